// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "verify/counted_heap.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include <malloc.h>

// The operators new and delete of clang's thread sanitizer cannot be replaced; they call hooks instead, as malloc does.
#ifdef __has_feature  // not in GCC 12, which needs none of this
#if __has_feature(thread_sanitizer)
#include <sanitizer/allocator_interface.h>
#define STEPWELL_HEAP_HAS_HOOKS
#endif
#endif

namespace {

std::atomic<std::int64_t> g_allocations{0}, g_held{0}, g_most{0};

std::int64_t size_of(void* p) { return static_cast<std::int64_t>(malloc_usable_size(p)); }

void count(void* p) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t size = size_of(p), now = g_held.fetch_add(size, std::memory_order_relaxed) + size;
  std::int64_t before = g_most.load(std::memory_order_relaxed);
  while (now > before && !g_most.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
}

void discount(void* p) { g_held.fetch_sub(size_of(p), std::memory_order_relaxed); }

}  // namespace

#ifdef STEPWELL_HEAP_HAS_HOOKS

namespace {

[[maybe_unused]] const int kHooks =
    __sanitizer_install_malloc_and_free_hooks([](const volatile void* p, std::size_t) { count(const_cast<void*>(p)); },
                                              [](const volatile void* p) { discount(const_cast<void*>(p)); });

}  // namespace

#else

namespace {

void* counted(void* p) {
  if (!p) throw std::bad_alloc();
  count(p);
  return p;
}

void release(void* p) {
  discount(p);
  std::free(p);
}

}  // namespace

void* operator new(std::size_t size) { return counted(std::malloc(std::max<std::size_t>(size, 1))); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto a = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(a, (std::max<std::size_t>(size, 1) + a - 1) / a * a));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }

#endif

namespace stepwell::verify {

std::int64_t heap_allocations() { return g_allocations.load(std::memory_order_relaxed); }

HeapMeter::HeapMeter() : start_(g_held) { g_most = start_; }
std::int64_t HeapMeter::peak() const { return g_most - start_; }

}  // namespace stepwell::verify
