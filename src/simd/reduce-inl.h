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

// Folds step over n elements: step(sums, i, lanes) returns the partial sums of one vector with elements i … i+lanes−1
// added; it must leave the lanes from `lanes` on unchanged.
template <class T, class Step>
HWY_INLINE T reduce16(std::int64_t n, Step step) {
  constexpr std::int64_t W = kWidth<T>;
  SixteenLanes<T> a;
#pragma GCC unroll 16
  for (auto& v : a.v) v = zero<T>();
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
#pragma GCC unroll 16
    for (int j = 0; j < a.kVectors; ++j) a.v[j] = step(a.v[j], i + j * W, W);
  }
#pragma GCC unroll 16
  for (int j = 0; j < a.kVectors; ++j) {
    const std::int64_t left = n - i - j * W;
    if (left > 0) a.v[j] = step(a.v[j], i + j * W, left < W ? left : W);
  }
  return fold_lanes(a);
}

// Σ x.
template <class T>
HWY_INLINE T sum16(const T* x, std::int64_t n) {
  return reduce16<T>(
      n, [x](Vec<T> s, std::int64_t i, std::int64_t lanes) HWY_ATTR { return hn::Add(s, load_part(x + i, lanes)); });
}

// Σ x·y, one fused multiply-add per element.
template <class T>
HWY_INLINE T dot16(const T* x, const T* y, std::int64_t n) {
  return reduce16<T>(n, [x, y](Vec<T> s, std::int64_t i, std::int64_t lanes)
                            HWY_ATTR { return fma(load_part(x + i, lanes), load_part(y + i, lanes), s); });
}

}  // namespace stepwell::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
