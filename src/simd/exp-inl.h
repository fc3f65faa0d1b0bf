// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// exp, exp2 and expm1 on full vectors, float or double. Results below the smallest normal number are 0 (flush-to-zero).
#if defined(STEPWELL_SIMD_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_SIMD_EXP_INL_H_
#undef STEPWELL_SIMD_EXP_INL_H_
#else
#define STEPWELL_SIMD_EXP_INL_H_
#endif

#include <limits>

#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::simd::HWY_NAMESPACE {

// A vector's lane type, its bits as unsigned integers, and a constant of its type.
template <class V>
using Lane = hn::TFromV<V>;
template <class V>
HWY_INLINE auto bits(V x) {
  return hn::BitCast(hn::RebindToUnsigned<hn::DFromV<V>>(), x);
}
template <class V>
HWY_INLINE V constant(Lane<V> value) {
  return hn::Set(hn::DFromV<V>(), value);
}
template <class V, class U>
HWY_INLINE V from_bits(U u) {
  return hn::BitCast(hn::DFromV<V>(), u);
}
template <class V>
HWY_INLINE auto constant_bits(hwy::MakeUnsigned<Lane<V>> value) {
  return hn::Set(hn::RebindToUnsigned<hn::DFromV<V>>(), value);
}

// c[0] + c[1]·x + … by Horner's rule, one fused operation per coefficient.
template <class V, int N>
HWY_INLINE V polynomial(V x, const Lane<V> (&c)[N]) {
  V p = constant<V>(c[N - 1]);
#pragma GCC unroll 32
  for (int i = N - 2; i >= 0; --i) p = fma(p, x, constant<V>(c[i]));
  return p;
}

// The same for K numbers that advance together, coefficient by coefficient. Where a kernel evaluates long polynomials
// back to back, the chains of single ones fill a processor's scheduler before its ports are busy.
template <class V, int K, int N>
HWY_INLINE void polynomials(const V (&x)[K], const Lane<V> (&c)[N], V (&p)[K]) {
#pragma GCC unroll 16
  for (int j = 0; j < K; ++j) p[j] = constant<V>(c[N - 1]);
#pragma GCC unroll 32
  for (int i = N - 2; i >= 0; --i) {
#pragma GCC unroll 16
    for (int j = 0; j < K; ++j) p[j] = fma(p[j], x[j], constant<V>(c[i]));
  }
}

// kRound is 1.5·2^p, p the mantissa bits: x + kRound has the integer nearest to x in its low bits, and shifted left by
// p they are the exponent field of 2^n. kExp: minimax of (eʳ−1−r)/r²; kExp2: of (2ʳ−1)/r.
template <class T>
struct ExpConstants;
template <>
struct ExpConstants<float> {
  static constexpr int kMantissa = 23;
  static constexpr float kRound = 0x1.8p23f, kLog2E = 0x1.715476p0f, kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kLowest = -0x1.5d589ep6f, kHighest = 0x1.62e42ep6f;  // exp is normal and finite between them
  static constexpr float kLowest2 = -126, kHighest2 = 0x1.fffffep6f;
  static constexpr float kMinusOneBelow = -18;  // expm1 rounds to −1
  static constexpr float kExp[] = {0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558f2p-5f, 0x1.123a22p-7f, 0x1.6a2444p-10f};
  static constexpr float kExp2[] = {0x1.62e424p-1f, 0x1.ebf9b4p-3f, 0x1.c6baa2p-5f, 0x1.3ced14p-7f, 0x1.5abdeap-10f};
};
template <>
struct ExpConstants<double> {
  static constexpr int kMantissa = 52;
  static constexpr double kRound = 0x1.8p52, kLog2E = 0x1.71547652b82fep0, kLn2High = 0x1.62e42feep-1,
                          kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kLowest = -0x1.6232bdd7abcd2p9, kHighest = 0x1.62e42fefa39efp9;
  static constexpr double kLowest2 = -1022, kHighest2 = 0x1.fffffffffffffp9;
  static constexpr double kMinusOneBelow = -38;
  static constexpr double kExp[] = {
      0x1.000000000000ap-1,  0x1.55555555554f9p-3, 0x1.555555555083fp-5, 0x1.1111111127d1dp-7,  0x1.6c16c18438a1fp-10,
      0x1.a01a012a0a22fp-13, 0x1.a01999e276ecp-16, 0x1.71df25be2f91p-19, 0x1.28ad9b7eda94ep-22, 0x1.ad7f2e086bdaep-26};
  static constexpr double kExp2[] = {0x1.62e42fefa39efp-1,  0x1.ebfbdff82c5a4p-3,  0x1.c6b08d7049feap-5,
                                     0x1.3b2ab6fba00e3p-7,  0x1.5d87fe78cd142p-10, 0x1.4309130ee43d7p-13,
                                     0x1.ffcbfbab08a7cp-17, 0x1.62bfc77f81e18p-20, 0x1.b52679de1cd5ep-24,
                                     0x1.e61b848d6842dp-28, 0x1.e7a0138beb174p-32};
};

// x = n·ln 2 + r with |r| ≤ ln 2 / 2; `exponent` is n in the exponent field (to be added to another number's bits).
template <class V>
struct ExpReduced {
  V r;
  decltype(bits(V())) exponent;
};
template <class V>
HWY_INLINE ExpReduced<V> reduce_exp(V x) {
  using C = ExpConstants<Lane<V>>;
  const V shifted = fma(x, constant<V>(C::kLog2E), constant<V>(C::kRound));
  const V n = hn::Sub(shifted, constant<V>(C::kRound));
  V r = fnma(n, constant<V>(C::kLn2High), x);
  r = fnma(n, constant<V>(C::kLn2Low), r);
  return {r, hn::ShiftLeft<C::kMantissa>(bits(shifted))};
}

// eʳ for |r| ≤ ln 2 / 2.
template <class V>
HWY_INLINE V exp_kernel(V r) {
  const V one = constant<V>(1);
  V p = polynomial(r, ExpConstants<Lane<V>>::kExp);
  p = fma(p, r, one);
  return fma(p, r, one);
}

// eˣ. Largest error 1 ulp; exp(0) = 1, exp(−inf) = 0, exp(inf) = inf; 0 below the smallest normal number.
template <class V>
HWY_INLINE V exp(V x) {
  using T = Lane<V>;
  using C = ExpConstants<T>;
  const auto [r, exponent] = reduce_exp(x);
  V y = from_bits<V>(hn::Add(bits(exp_kernel(r)), exponent));
  // x·inf is inf above the range and a NaN for a NaN.
  y = hn::IfThenElse(hn::Le(x, constant<V>(C::kHighest)), y,
                     hn::Mul(x, constant<V>(std::numeric_limits<T>::infinity())));
  return hn::IfThenZeroElse(hn::Lt(x, constant<V>(C::kLowest)), y);
}

// eˣ, the same bits, where x ≤ 60 is known; anything else but NaN gives an unspecified number. Cheaper by a comparison.
template <class V>
HWY_INLINE V exp_bounded(V x) {
  using C = ExpConstants<Lane<V>>;
  const auto [r, exponent] = reduce_exp(x);
  const V power = from_bits<V>(hn::Add(exponent, bits(constant<V>(1))));
  return hn::IfThenZeroElse(hn::Lt(x, constant<V>(C::kLowest)), hn::Mul(exp_kernel(r), power));
}

// The same for K numbers.
template <class V, int K>
HWY_INLINE void exp_bounded(const V (&x)[K], V (&y)[K]) {
  using C = ExpConstants<Lane<V>>;
  V r[K], power[K];
#pragma GCC unroll 16
  for (int j = 0; j < K; ++j) {
    const auto reduced = reduce_exp(x[j]);
    r[j] = reduced.r;
    power[j] = from_bits<V>(hn::Add(reduced.exponent, bits(constant<V>(1))));
  }
  polynomials(r, C::kExp, y);
#pragma GCC unroll 16
  for (int j = 0; j < K; ++j) y[j] = fma(y[j], r[j], constant<V>(1));
#pragma GCC unroll 16
  for (int j = 0; j < K; ++j) y[j] = fma(y[j], r[j], constant<V>(1));
#pragma GCC unroll 16
  for (int j = 0; j < K; ++j) y[j] = hn::IfThenZeroElse(hn::Lt(x[j], constant<V>(C::kLowest)), hn::Mul(y[j], power[j]));
}

// 2ˣ where −126 ≤ x < 128 (double: −1022 ≤ x < 1024) is known; outside, and for NaN, an unspecified number.
template <class V>
HWY_INLINE V exp2_unclamped(V x) {
  using C = ExpConstants<Lane<V>>;
  const V shifted = hn::Add(x, constant<V>(C::kRound));
  const V r = hn::Sub(x, hn::Sub(shifted, constant<V>(C::kRound)));
  const V p = fma(polynomial(r, C::kExp2), r, constant<V>(1));
  return from_bits<V>(hn::Add(bits(p), hn::ShiftLeft<C::kMantissa>(bits(shifted))));
}

// 2ˣ, for decays whose exponent carries log2(e) already. Largest error 1.8 ulp (double: 1 ulp); exact for integers;
// 0 below the smallest normal number. The same bits as exp2_unclamped in its range.
template <class V>
HWY_INLINE V exp2(V x) {
  using T = Lane<V>;
  using C = ExpConstants<T>;
  V y = exp2_unclamped(x);
  y = hn::IfThenElse(hn::Le(x, constant<V>(C::kHighest2)), y,
                     hn::Mul(x, constant<V>(std::numeric_limits<T>::infinity())));
  return hn::IfThenZeroElse(hn::Lt(x, constant<V>(C::kLowest2)), y);
}

// eʳ − 1 for |r| ≤ ln 2 / 2.
template <class V>
HWY_INLINE V expm1_kernel(V r) {
  return fma(polynomial(r, ExpConstants<Lane<V>>::kExp), hn::Mul(r, r), r);
}

// eˣ − 1 where 0 ≤ x ≤ 60 is known (or NaN).
template <class V>
HWY_INLINE V expm1_bounded(V x) {
  const auto [r, exponent] = reduce_exp(x);
  const V power = from_bits<V>(hn::Add(exponent, bits(constant<V>(1))));
  return fma(power, expm1_kernel(r), hn::Sub(power, constant<V>(1)));
}

// eˣ − 1. Largest error 2 ulp; −1 exactly far below, ±0 kept.
template <class V>
HWY_INLINE V expm1(V x) {
  using T = Lane<V>;
  using C = ExpConstants<T>;
  const auto [r, exponent] = reduce_exp(x);
  // At half scale, so that 2ⁿ⁻¹ is finite wherever the result is.
  const V half = constant<V>(T{0.5});
  const V power = from_bits<V>(hn::Add(exponent, bits(half)));
  V y = fma(power, expm1_kernel(r), hn::Sub(power, half));
  y = hn::Add(y, y);
  y = hn::IfThenElse(hn::Le(x, constant<V>(C::kHighest)), y,
                     hn::Mul(x, constant<V>(std::numeric_limits<T>::infinity())));
  y = hn::IfThenElse(hn::Lt(x, constant<V>(C::kMinusOneBelow)), constant<V>(-1), y);
  return hn::IfThenElse(hn::Lt(hn::Abs(x), constant<V>(std::numeric_limits<T>::epsilon() / 2)), x, y);
}

}  // namespace stepwell::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
