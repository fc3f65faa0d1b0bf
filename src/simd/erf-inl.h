// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// erf, the normal distribution function, and the erf form of GELU on full vectors, float or double.
#if defined(STEPWELL_SIMD_ERF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_SIMD_ERF_INL_H_
#undef STEPWELL_SIMD_ERF_INL_H_
#else
#define STEPWELL_SIMD_ERF_INL_H_
#endif

#include "simd/activations-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::simd::HWY_NAMESPACE {

// kErf: minimax of erf(x)/x in x² for |x| ≤ 1. kTail: minimax of Φ(−a)·exp(a²/2)·(a + kCentre) in
// q = (a − kCentre)/(a + kCentre) for 0 ≤ a ≤ kTailEnd, where Φ(−a) has underflowed.
template <class T>
struct ErfConstants;
template <>
struct ErfConstants<float> {
  static constexpr float kCentre = 4, kTailEnd = 14;
  static constexpr float kErf[] = {0x1.20dd74p0f,  -0x1.81273ep-2f,  0x1.ce2cf8p-4f, -0x1.b7f90cp-6f,
                                   0x1.5405aep-8f, -0x1.a3f6e4p-11f, 0x1.4969dcp-14f};
  static constexpr float kTail[] = {0x1.82b4bcp-1f,  -0x1.373e3ap-1f, 0x1.8c6d9cp-2f,  -0x1.7dffe2p-3f,
                                    0x1.eed4aap-5f,  -0x1.ed4578p-8f, -0x1.ccb6aap-9f, 0x1.9c0d9cp-10f,
                                    0x1.83254cp-13f, -0x1.0fab0ep-13f};
};
template <>
struct ErfConstants<double> {
  static constexpr double kCentre = 5, kTailEnd = 38.5;
  static constexpr double kErf[] = {0x1.20dd750429b6dp0,    -0x1.812746b0379bdp-2,  0x1.ce2f21a040d12p-4,
                                    -0x1.b82ce311fa78fp-6,  0x1.565bccf926fb6p-8,   -0x1.c02db03d28be3p-11,
                                    0x1.f9a2ba98396d7p-14,  -0x1.f4ca4c6c74b12p-17, 0x1.b97fc9f6ec7e1p-20,
                                    -0x1.5c06eb649ce3dp-23, 0x1.d7197bb840e0fp-27,  -0x1.aba9b0c94da97p-31};
  static constexpr double kTail[] = {
      0x1.89d3abe1f95aep-1,   -0x1.54ad03f27ca18p-1, 0x1.fb31653876f89p-2,   -0x1.410ed5f87594cp-2,
      0x1.51f6329f01ba8p-3,   -0x1.1b1c254ca3fb5p-4, 0x1.54b4d4f48aa52p-6,   -0x1.88590e98575f8p-9,
      -0x1.a25037785dd19p-11, 0x1.1daf1ae025157p-11, -0x1.f21492d68ab36p-15, -0x1.a1701363ad8e5p-15,
      0x1.17df128c50afcp-16,  0x1.0b14e53608c1cp-18, -0x1.73e07c54eb9b3p-19, -0x1.674a1ebc93c29p-22,
      0x1.d469482b464a2p-22,  0x1.597fa6265d033p-25, -0x1.2cf45262766e9p-24, -0x1.269b3f4277c74p-27,
      0x1.711e12a109956p-27,  0x1.305d4cf323d26p-29, -0x1.3a311838233c4p-30, -0x1.9c617c9ec8dfap-32};
};

// exp(−factor·a²), factor a power of two: the rounding error of a², which a² itself would amplify, is put back.
template <class V>
HWY_INLINE V gaussian(V a, Lane<V> factor) {
  const V square = hn::Mul(a, a);
  const V lost = fma(a, a, hn::Neg(square));
  const V e = exp_bounded(hn::Mul(square, constant<V>(-factor)));
  return fnma(hn::Mul(lost, constant<V>(factor)), e, e);
}

// For a ≥ 0: the normal distribution's upper tail Φ(−a), and exp(−a²/2).
template <class V>
struct NormalTail {
  V tail, bell;
};
template <class V>
HWY_INLINE NormalTail<V> normal_tail(V a) {
  using T = Lane<V>;
  using C = ErfConstants<T>;
  a = at_most(a, C::kTailEnd);
  const V bell = gaussian(a, T{0.5});
  const V inverse = hn::Div(constant<V>(1), hn::Add(a, constant<V>(C::kCentre)));
  const V q = fma(inverse, constant<V>(-2 * C::kCentre), constant<V>(1));
  return {hn::Mul(hn::Mul(polynomial(q, C::kTail), inverse), bell), bell};
}

// Largest error 3 ulp; exactly ±1 far out.
template <class V>
HWY_INLINE V erf(V x) {
  using T = Lane<V>;
  const V a = hn::Abs(x);
  const V small = hn::Mul(a, polynomial(hn::Mul(a, a), ErfConstants<T>::kErf));
  const V tail = normal_tail(hn::Mul(a, constant<V>(static_cast<T>(0x1.6a09e667f3bcdp0)))).tail;
  const V large = fnma(tail, constant<V>(2), constant<V>(1));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, constant<V>(1)), small, large), x);
}
template <class V>
HWY_INLINE V erf_derivative(V x) {
  const V a = at_most(hn::Abs(x), kFar<Lane<V>>);
  return hn::Mul(constant<V>(static_cast<Lane<V>>(0x1.20dd750429b6dp0)), gaussian(a, 1));
}

// The normal distribution function Φ(x) with exp(−x²/2): near 0 from erf's polynomial, further out from the tail.
template <class V>
struct NormalCdf {
  V phi, bell;
};
template <class V>
HWY_INLINE NormalCdf<V> normal_cdf(V x) {
  using T = Lane<V>;
  const auto [tail, bell] = normal_tail(hn::Abs(x));
  const V far = hn::IfThenElse(hn::Lt(x, constant<V>(0)), tail, hn::Sub(constant<V>(1), tail));
  const V half = constant<V>(T{0.5});
  const V slope = polynomial(hn::Mul(hn::Mul(x, x), half), ErfConstants<T>::kErf);
  const V near = fma(hn::Mul(x, constant<V>(static_cast<T>(0x1.6a09e667f3bcdp-2))), slope, half);
  return {hn::IfThenElse(hn::Lt(hn::Abs(x), constant<V>(1)), near, far), bell};
}

// x·Φ(x). Largest error 6 ulp, below 0 too; −0 where Φ(x) has underflowed and at −inf.
template <class V>
HWY_INLINE V gelu_erf(V x) {
  return hn::Mul(at_least(x, -kFar<Lane<V>>), normal_cdf(x).phi);
}
template <class V>
HWY_INLINE V gelu_erf_derivative(V x) {
  x = at_most(at_least(x, -kFar<Lane<V>>), kFar<Lane<V>>);
  const auto [phi, bell] = normal_cdf(x);
  return fma(hn::Mul(x, constant<V>(static_cast<Lane<V>>(0x1.9884533d43651p-2))), bell, phi);
}

}  // namespace stepwell::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
