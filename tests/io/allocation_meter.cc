// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/io/allocation_meter.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include <malloc.h>

namespace {

std::atomic<std::int64_t> held{0}, most{0};

void* counted(void* p) {
  if (!p) throw std::bad_alloc();
  const std::int64_t now = held += static_cast<std::int64_t>(malloc_usable_size(p));
  std::int64_t before = most;
  while (now > before && !most.compare_exchange_weak(before, now)) {
  }
  return p;
}

void discount(void* p) {
  if (p) held -= static_cast<std::int64_t>(malloc_usable_size(p));
  std::free(p);
}

}  // namespace

// The program's allocation functions, replaced for the whole test binary.
void* operator new(std::size_t size) { return counted(std::malloc(std::max<std::size_t>(size, 1))); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto a = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(a, (std::max<std::size_t>(size, 1) + a - 1) / a * a));
}
void operator delete(void* p) noexcept { discount(p); }
void operator delete(void* p, std::size_t) noexcept { discount(p); }
void operator delete(void* p, std::align_val_t) noexcept { discount(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { discount(p); }

namespace stepwell {

AllocationMeter::AllocationMeter() : start_(held) { most = start_; }
std::int64_t AllocationMeter::peak() const { return most - start_; }

}  // namespace stepwell
