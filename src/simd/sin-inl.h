// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// sin and cos on full vectors, float or double.
#if defined(STEPWELL_SIMD_SIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_SIMD_SIN_INL_H_
#undef STEPWELL_SIMD_SIN_INL_H_
#else
#define STEPWELL_SIMD_SIN_INL_H_
#endif

#include <cmath>
#include <limits>

#include "simd/exp-inl.h"
#include "simd/large_angle.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::simd::HWY_NAMESPACE {

// kHalfPi: π/2 as a sum, good for |x| ≤ kRange; without fused multiply-add each part has so few bits that its products
// with n are exact. Minimax polynomials on |r| ≤ π/4: kSin of (sin r/r − 1)/r², kCos of (cos r − 1 + r²/2)/r⁴.
template <class T>
struct SinConstants;
template <>
struct SinConstants<float> {
#if HWY_TARGET == HWY_SSE4
  static constexpr float kRange = 0x1p12f;
  static constexpr float kHalfPi[] = {0x1.92p0f, 0x1.fb4p-12f, 0x1.444p-24f, 0x1.68c234p-39f};
#else
  static constexpr float kRange = 0x1p16f;
  static constexpr float kHalfPi[] = {0x1.921fb6p0f, -0x1.777a5cp-25f, -0x1.ee59dap-50f};
#endif
  static constexpr float kTwoOverPi = 0x1.45f306p-1f;
  static constexpr float kSin[] = {-0x1.555546p-3f, 0x1.110742p-7f, -0x1.994454p-13f};
  static constexpr float kCos[] = {0x1.55554ap-5f, -0x1.6c0c6cp-10f, 0x1.99f92p-16f};
};
template <>
struct SinConstants<double> {
#if HWY_TARGET == HWY_SSE4
  static constexpr double kRange = 0x1p20;
  static constexpr double kHalfPi[] = {0x1.921fb544p0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69, 0x1.b839a252049c1p-104};
#else
  static constexpr double kRange = 0x1p30;
  static constexpr double kHalfPi[] = {0x1.921fb54442d18p0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed9p-110};
#endif
  static constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  static constexpr double kSin[] = {-0x1.5555555555549p-3, 0x1.111111110f861p-7,   -0x1.a01a019c0e4d4p-13,
                                    0x1.71de3574bba35p-19, -0x1.ae5e63ce95e26p-26, 0x1.5d924719ed134p-33};
  static constexpr double kCos[] = {0x1.555555555554cp-5,   -0x1.6c16c16c15162p-10, 0x1.a01a019caef39p-16,
                                    -0x1.27e4f807d630bp-22, 0x1.1ee9ea6cc138p-29,   -0x1.8fadd06a68d65p-37};
};

// x = n·π/2 + r; `quadrant` holds n modulo 4 in its low bits.
template <class V>
struct ReducedAngles {
  V r;
  decltype(bits(V())) quadrant;
};

// Redoes the lanes of x that are out of range: exactly, one by one. NaN for infinities and NaN.
template <class V>
HWY_NOINLINE ReducedAngles<V> reduce_far_lanes(V x, ReducedAngles<V> reduced) {
  using T = Lane<V>;
  const hn::DFromV<V> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  HWY_ALIGN T angle[kWidth<T>], r[kWidth<T>];
  HWY_ALIGN hwy::MakeUnsigned<T> quadrant[kWidth<T>];
  hn::Store(x, d, angle);
  hn::Store(reduced.r, d, r);
  hn::Store(reduced.quadrant, du, quadrant);
  for (int i = 0; i < kWidth<T>; ++i) {
    if (std::fabs(angle[i]) <= SinConstants<T>::kRange) continue;
    if (std::fabs(angle[i]) <= std::numeric_limits<T>::max()) {
      const auto [rest, n] = reduce_large_angle(static_cast<double>(angle[i]));
      r[i] = static_cast<T>(rest);
      quadrant[i] = n;
    } else {
      r[i] = std::numeric_limits<T>::quiet_NaN();
    }
  }
  return {hn::Load(d, r), hn::Load(du, quadrant)};
}

template <class V>
HWY_INLINE ReducedAngles<V> reduce_angle(V x) {
  using T = Lane<V>;
  using C = SinConstants<T>;
  const V round = constant<V>(ExpConstants<T>::kRound);
  const V shifted = fma(x, constant<V>(C::kTwoOverPi), round);
  const V n = hn::Sub(shifted, round);
  V r = x;
#pragma GCC unroll 4
  for (const T part : C::kHalfPi) r = fnma(n, constant<V>(part), r);
  const ReducedAngles<V> reduced = {r, bits(shifted)};
  const auto in_range = hn::Le(hn::Abs(x), constant<V>(C::kRange));
  if (HWY_LIKELY(hn::AllTrue(hn::DFromV<V>(), in_range))) return reduced;
  return reduce_far_lanes(x, reduced);
}

// sin(x + kQuarters·π/2).
template <int kQuarters, class V>
HWY_INLINE V sin_shifted(V x) {
  using T = Lane<V>;
  using C = SinConstants<T>;
  const auto [r, n] = reduce_angle(x);
  const V z = hn::Mul(r, r);
  const V sine = fma(hn::Mul(z, r), polynomial(z, C::kSin), r);
  const V cosine = fma(hn::Mul(z, z), polynomial(z, C::kCos), fnma(z, constant<V>(T{0.5}), constant<V>(1)));
  // Bit 0 of the quadrant swaps sine and cosine, bit 1 turns the sign.
  const auto quadrant = hn::Add(n, constant_bits<V>(kQuarters));
  const auto one = constant_bits<V>(1);
  const auto swapped = hn::MaskFromVec(from_bits<V>(hn::Sub(constant_bits<V>(0), hn::And(quadrant, one))));
  const auto sign = hn::ShiftLeft<sizeof(T) * 8 - 1>(hn::ShiftRight<1>(quadrant));
  return from_bits<V>(hn::Xor(bits(hn::IfThenElse(swapped, cosine, sine)), sign));
}

// Largest error 2 ulp for every finite x; NaN for infinities. Fast for |x| ≤ 65,536 (double: 2³⁰).
template <class V>
HWY_INLINE V sin(V x) {
  return hn::IfThenElse(hn::Eq(x, constant<V>(0)), x, sin_shifted<0>(x));  // keeps −0
}
template <class V>
HWY_INLINE V cos(V x) {
  return sin_shifted<1>(x);
}

}  // namespace stepwell::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
