// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// sin and cos on full vectors, float or double.
#if defined(STEPWELL_SIMD_SIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_SIMD_SIN_INL_H_
#undef STEPWELL_SIMD_SIN_INL_H_
#else
#define STEPWELL_SIMD_SIN_INL_H_
#endif

#include "simd/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::simd::HWY_NAMESPACE {

// π/2 in three parts, and minimax polynomials on |r| ≤ π/4: kSin of (sin r/r − 1)/r², kCos of (cos r − 1 + r²/2)/r⁴.
template <class T>
struct SinConstants;
template <>
struct SinConstants<float> {
  static constexpr float kRange = 0x1p16f, kTwoOverPi = 0x1.45f306p-1f;
  static constexpr float kHigh = 0x1.921fb6p0f, kMiddle = -0x1.777a5cp-25f, kLow = -0x1.ee59dap-50f;
  static constexpr float kSin[] = {-0x1.555546p-3f, 0x1.110742p-7f, -0x1.994454p-13f};
  static constexpr float kCos[] = {0x1.55554ap-5f, -0x1.6c0c6cp-10f, 0x1.99f92p-16f};
};
template <>
struct SinConstants<double> {
  static constexpr double kRange = 0x1p30, kTwoOverPi = 0x1.45f306dc9c883p-1;
  static constexpr double kHigh = 0x1.921fb54442d18p0, kMiddle = 0x1.1a62633145c07p-54, kLow = -0x1.f1976b7ed9p-110;
  static constexpr double kSin[] = {-0x1.5555555555549p-3, 0x1.111111110f861p-7,   -0x1.a01a019c0e4d4p-13,
                                    0x1.71de3574bba35p-19, -0x1.ae5e63ce95e26p-26, 0x1.5d924719ed134p-33};
  static constexpr double kCos[] = {0x1.555555555554cp-5,   -0x1.6c16c16c15162p-10, 0x1.a01a019caef39p-16,
                                    -0x1.27e4f807d630bp-22, 0x1.1ee9ea6cc138p-29,   -0x1.8fadd06a68d65p-37};
};

// sin(x + kQuarters·π/2).
template <int kQuarters, class V>
HWY_INLINE V sin_shifted(V x) {
  using T = Lane<V>;
  using C = SinConstants<T>;
  const V round = constant<V>(ExpConstants<T>::kRound);
  const V shifted = fma(x, constant<V>(C::kTwoOverPi), round);
  const V n = hn::Sub(shifted, round);
  V r = fnma(n, constant<V>(C::kHigh), x);
  r = fnma(n, constant<V>(C::kMiddle), r);
  r = fnma(n, constant<V>(C::kLow), r);
  const V z = hn::Mul(r, r);
  const V sine = fma(hn::Mul(z, r), polynomial(z, C::kSin), r);
  const V cosine = fma(hn::Mul(z, z), polynomial(z, C::kCos), fnma(z, constant<V>(T{0.5}), constant<V>(1)));
  // The quadrant: bit 0 swaps sine and cosine, bit 1 turns the sign.
  const auto quadrant = hn::Add(bits(shifted), constant_bits<V>(kQuarters));
  const auto one = constant_bits<V>(1);
  const auto swapped = hn::MaskFromVec(from_bits<V>(hn::Sub(constant_bits<V>(0), hn::And(quadrant, one))));
  const auto sign = hn::ShiftLeft<sizeof(T) * 8 - 1>(hn::ShiftRight<1>(quadrant));
  return from_bits<V>(hn::Xor(bits(hn::IfThenElse(swapped, cosine, sine)), sign));
}

// Largest error 2 ulp for |x| ≤ 65,536 (double: 2³⁰).
template <class V>
HWY_INLINE V sin(V x) {
  return sin_shifted<0>(x);
}
template <class V>
HWY_INLINE V cos(V x) {
  return sin_shifted<1>(x);
}

}  // namespace stepwell::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
