// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// The fixed 16-lane sum and dot product: lane j adds elements j, j+16, j+32, … in order, starting from 0 (a missing
// element of the last 16 counts as 0), and the lanes are folded 8, 4, 2, 1. The same bits for any vector width.
#if defined(STEPWELL_SIMD_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_SIMD_REDUCE_INL_H_
#undef STEPWELL_SIMD_REDUCE_INL_H_
#else
#define STEPWELL_SIMD_REDUCE_INL_H_
#endif

#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::simd::HWY_NAMESPACE {

// Sixteen partial sums.
template <class T>
struct SixteenLanes {
  static constexpr int kVectors = 16 / kWidth<T>;
  Vec<T> v[kVectors];
};

// The first n lanes (any n) of a vector from memory, the others 0.
template <class T>
HWY_INLINE Vec<T> load_part(const T* p, std::int64_t n) {
  if (n >= kWidth<T>) return load(p);
  return n > 0 ? load_tail(p, n) : zero<T>();
}

// Lane j + lane j+8, then +4, +2, +1.
template <class T>
HWY_INLINE T fold_lanes(const SixteenLanes<T>& lanes) {
  HWY_ALIGN T s[16];
#pragma GCC unroll 16
  for (int i = 0; i < lanes.kVectors; ++i) store(lanes.v[i], s + i * kWidth<T>);
#pragma GCC unroll 4
  for (int half = 8; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int j = 0; j < half; ++j) s[j] += s[j + half];
  }
  return s[0];
}

template <class T>
HWY_INLINE T sum16(const T* x, std::int64_t n) {
  SixteenLanes<T> a;
#pragma GCC unroll 16
  for (auto& v : a.v) v = zero<T>();
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
#pragma GCC unroll 16
    for (int j = 0; j < a.kVectors; ++j) a.v[j] = hn::Add(a.v[j], load(x + i + j * kWidth<T>));
  }
  if (i < n) {
#pragma GCC unroll 16
    for (int j = 0; j < a.kVectors; ++j) {
      const std::int64_t at = i + j * kWidth<T>;
      a.v[j] = hn::Add(a.v[j], load_part(x + at, n - at));
    }
  }
  return fold_lanes(a);
}

// Σ x·y, one fused multiply-add per element.
template <class T>
HWY_INLINE T dot16(const T* x, const T* y, std::int64_t n) {
  SixteenLanes<T> a;
#pragma GCC unroll 16
  for (auto& v : a.v) v = zero<T>();
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
#pragma GCC unroll 16
    for (int j = 0; j < a.kVectors; ++j) {
      const std::int64_t at = i + j * kWidth<T>;
      a.v[j] = fma(load(x + at), load(y + at), a.v[j]);
    }
  }
  if (i < n) {
#pragma GCC unroll 16
    for (int j = 0; j < a.kVectors; ++j) {
      const std::int64_t at = i + j * kWidth<T>;
      a.v[j] = fma(load_part(x + at, n - at), load_part(y + at, n - at), a.v[j]);
    }
  }
  return fold_lanes(a);
}

}  // namespace stepwell::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
