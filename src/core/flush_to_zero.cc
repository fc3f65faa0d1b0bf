// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/flush_to_zero.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace stepwell {

#if defined(__x86_64__)
namespace {
constexpr unsigned kFlush = 0x8000, kDenormalsAreZero = 0x0040;
}
FlushToZero::FlushToZero() noexcept : saved_(_mm_getcsr()) {
  const auto wanted = static_cast<unsigned>(saved_) | kFlush | kDenormalsAreZero;
  if (wanted != saved_) _mm_setcsr(wanted);
}
FlushToZero::~FlushToZero() {
  // Only the mode bits go back: exception flags raised meanwhile stay raised, as they would without the guard.
  const unsigned mode = kFlush | kDenormalsAreZero;
  if ((saved_ & mode) != mode) _mm_setcsr((_mm_getcsr() & ~mode) | (static_cast<unsigned>(saved_) & mode));
}
#elif defined(__aarch64__)
namespace {
constexpr std::uint64_t kFlush = std::uint64_t{1} << 24;
}
FlushToZero::FlushToZero() noexcept {
  asm volatile("mrs %0, fpcr" : "=r"(saved_));
  if (!(saved_ & kFlush)) asm volatile("msr fpcr, %0" : : "r"(saved_ | kFlush));
}
FlushToZero::~FlushToZero() {
  if (!(saved_ & kFlush)) asm volatile("msr fpcr, %0" : : "r"(saved_));
}
#else
#error "FlushToZero: no floating-point mode control for this processor"
#endif

}  // namespace stepwell
