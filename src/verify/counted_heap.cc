// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "verify/counted_heap.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include <malloc.h>

namespace {

std::atomic<std::int64_t> g_allocations{0}, g_held{0}, g_most{0};

void* counted(void* p) {
  if (!p) throw std::bad_alloc();
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  const auto size = static_cast<std::int64_t>(malloc_usable_size(p));
  const std::int64_t now = g_held.fetch_add(size, std::memory_order_relaxed) + size;
  std::int64_t before = g_most.load(std::memory_order_relaxed);
  while (now > before && !g_most.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
  return p;
}

void discount(void* p) {
  if (p) g_held.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(p)), std::memory_order_relaxed);
  std::free(p);
}

}  // namespace

void* operator new(std::size_t size) { return counted(std::malloc(std::max<std::size_t>(size, 1))); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto a = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(a, (std::max<std::size_t>(size, 1) + a - 1) / a * a));
}
void operator delete(void* p) noexcept { discount(p); }
void operator delete(void* p, std::size_t) noexcept { discount(p); }
void operator delete(void* p, std::align_val_t) noexcept { discount(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { discount(p); }

namespace stepwell::verify {

std::int64_t heap_allocations() { return g_allocations.load(std::memory_order_relaxed); }

HeapMeter::HeapMeter() : start_(g_held) { g_most = start_; }
std::int64_t HeapMeter::peak() const { return g_most - start_; }

}  // namespace stepwell::verify
