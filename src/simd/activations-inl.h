// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// Activations of neural networks and their derivatives on full vectors, float or double (docs/numerics.md; the
// definitions are those of the published models: softplus has its threshold at 20).
#if defined(STEPWELL_SIMD_ACTIVATIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_SIMD_ACTIVATIONS_INL_H_
#undef STEPWELL_SIMD_ACTIVATIONS_INL_H_
#else
#define STEPWELL_SIMD_ACTIVATIONS_INL_H_
#endif

#include "simd/log-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::simd::HWY_NAMESPACE {

// Beyond ±kFar every sigmoid is 0 or 1 exactly; clamping there keeps inf·0 out of products.
template <class T>
inline constexpr T kFar = sizeof(T) == 4 ? T{128} : T{1024};

// min and max that keep a NaN in x (Highway's differ between targets).
template <class V>
HWY_INLINE V at_most(V x, Lane<V> bound) {
  return hn::IfThenElse(hn::Lt(constant<V>(bound), x), constant<V>(bound), x);
}
template <class V>
HWY_INLINE V at_least(V x, Lane<V> bound) {
  return hn::IfThenElse(hn::Lt(x, constant<V>(bound)), constant<V>(bound), x);
}

// −eˣ, but never below −(largest finite number), so that its product with a step of 0 is 0: the decay rate A of A_log.
// Its own derivative. Largest error 1 ulp.
template <class V>
HWY_INLINE V decay_rate(V x) {
  return hn::Neg(at_most(exp(x), std::numeric_limits<Lane<V>>::max()));
}

// −|x|.
template <class V>
HWY_INLINE V minus_abs(V x) {
  return hn::Or(x, hn::SignBit(hn::DFromV<V>()));
}

// e = exp(−|x|), from which sigmoid, silu and softplus follow. A kernel that needs one of them for many numbers is
// faster in two passes, exponentials first: shorter chains of dependent operations overlap better.
template <class V>
HWY_INLINE V exp_minus_abs(V x) {
  return exp_bounded(minus_abs(x));
}

template <class V, int K>
HWY_INLINE void exp_minus_abs(const V (&x)[K], V (&e)[K]) {
  V negative[K];
#pragma GCC unroll 16
  for (int j = 0; j < K; ++j) negative[j] = minus_abs(x[j]);
  exp_bounded(negative, e);
}

// sig(x) and sig(−x) from one exponential; neither loses accuracy by cancellation.
template <class V>
struct SigmoidPair {
  V positive, negative;
};
template <class V>
HWY_INLINE SigmoidPair<V> sigmoid_pair(V x) {
  const V e = exp_minus_abs(x);
  const V sum = hn::Add(constant<V>(1), e);
  const V large = hn::Div(constant<V>(1), sum), small = hn::Div(e, sum);
  const auto below = hn::Lt(x, constant<V>(0));
  return {hn::IfThenElse(below, small, large), hn::IfThenElse(below, large, small)};
}

// 1/(1 + e⁻ˣ). Largest error 2.5 ulp.
template <class V>
HWY_INLINE V sigmoid(V x, V e) {
  const V top = hn::IfThenElse(hn::Lt(x, constant<V>(0)), e, constant<V>(1));
  return hn::Div(top, hn::Add(constant<V>(1), e));
}
template <class V>
HWY_INLINE V sigmoid(V x) {
  return sigmoid(x, exp_minus_abs(x));
}
template <class V>
HWY_INLINE V sigmoid_derivative(V x) {
  const auto [s, t] = sigmoid_pair(x);
  return hn::Mul(s, t);
}

// x·sig(x). Largest error 3.5 ulp; −0 where sig(x) has underflowed and at −inf.
template <class V>
HWY_INLINE V silu(V x, V e) {
  // NaN: so is the sigmoid.
  return hn::Mul(hn::Max(x, constant<V>(-std::numeric_limits<Lane<V>>::max())), sigmoid(x, e));
}
template <class V>
HWY_INLINE V silu(V x) {
  return silu(x, exp_minus_abs(x));
}
template <class V>
HWY_INLINE V silu_derivative(V x) {
  x = at_most(at_least(x, -kFar<Lane<V>>), kFar<Lane<V>>);
  const auto [s, t] = sigmoid_pair(x);
  return fma(hn::Mul(s, t), x, s);
}

// Largest error 3 ulp; exactly ±1 from |x| = 10 (double: 20) on, never beyond.
template <class V>
HWY_INLINE V tanh(V x) {
  const V a = at_most(hn::Abs(x), sizeof(Lane<V>) == 4 ? 10 : 20);
  const V e = expm1_bounded(hn::Add(a, a));
  return hn::CopySign(hn::Div(e, hn::Add(e, constant<V>(2))), x);
}
// 1 − tanh²(x), as 4·e/(1+e)² with e = exp(−2|x|): accurate where tanh is near ±1 too.
template <class V>
HWY_INLINE V tanh_derivative(V x) {
  const V e = exp_bounded(hn::Mul(hn::Abs(x), constant<V>(-2)));
  const V sum = hn::Add(constant<V>(1), e);
  const V ratio = hn::Div(constant<V>(2), sum);
  return hn::Mul(hn::Mul(ratio, ratio), e);
}

// x > 20: x; otherwise log1p(exp(x)), as max(x, 0) + log1p(e). Largest error 2.5 ulp.
template <class V>
HWY_INLINE V softplus_from_log(V x, V log) {
  const V y = hn::Add(hn::Max(x, constant<V>(0)), log);  // NaN: so is the logarithm
  if constexpr (std::is_same_v<Lane<V>, float>) {
    return y;  // which above 20 rounds to x
  } else {
    return hn::IfThenElse(hn::Lt(constant<V>(20), x), x, y);
  }
}
template <class V>
HWY_INLINE V softplus(V x, V e) {
  return softplus_from_log(x, log1p_unit(e));
}
template <class V>
HWY_INLINE V softplus(V x) {
  return softplus(x, exp_minus_abs(x));
}
// The same for K numbers and their exponentials.
template <class V, int K>
HWY_INLINE void softplus(const V (&x)[K], const V (&e)[K], V (&y)[K]) {
  V log[K];
  polynomials(e, LogConstants<Lane<V>>::kLog1p, log);
#pragma GCC unroll 16
  for (int j = 0; j < K; ++j) y[j] = softplus_from_log(x[j], fma(hn::Mul(e[j], log[j]), e[j], e[j]));
}
// x > 20: exactly 1; otherwise sig(x).
template <class V>
HWY_INLINE V softplus_derivative(V x, V e) {
  return hn::IfThenElse(hn::Lt(constant<V>(20), x), constant<V>(1), sigmoid(x, e));
}
template <class V>
HWY_INLINE V softplus_derivative(V x) {
  return softplus_derivative(x, exp_minus_abs(x));
}

// x + 1 above 0, eˣ below: ELU with its floor at 0, positive for every x.
template <class V>
HWY_INLINE V elu_plus_one(V x) {
  return hn::IfThenElse(hn::Lt(constant<V>(0), x), hn::Add(x, constant<V>(1)), exp(at_most(x, 0)));
}

// log(sig(x)) = min(x, 0) − log1p(exp(−|x|)). Largest error 2.5 ulp.
template <class V>
HWY_INLINE V log_sigmoid(V x) {
  return hn::Sub(at_most(x, 0), log1p_unit(exp_minus_abs(x)));
}
template <class V>
HWY_INLINE V log_sigmoid_derivative(V x) {
  return sigmoid(hn::Neg(x));
}

// The tanh form of GELU, 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))), written x·sig(2·…): no cancellation below 0.
template <class V>
HWY_INLINE V gelu_tanh_argument(V x) {
  constexpr double kLinear = 0x1.9884533d43651p0, kCubic = 0x1.2444f2a4d8b4bp-4;
  return hn::Mul(
      x, fma(hn::Mul(x, x), constant<V>(static_cast<Lane<V>>(kCubic)), constant<V>(static_cast<Lane<V>>(kLinear))));
}
template <class V>
HWY_INLINE V gelu_tanh(V x) {
  x = at_least(x, -kFar<Lane<V>>);
  return hn::Mul(x, sigmoid(gelu_tanh_argument(x)));
}
template <class V>
HWY_INLINE V gelu_tanh_derivative(V x) {
  constexpr double kLinear = 0x1.9884533d43651p0, kThreeCubic = 3 * 0x1.2444f2a4d8b4bp-4;
  x = at_most(at_least(x, -kFar<Lane<V>>), kFar<Lane<V>>);
  const auto [s, t] = sigmoid_pair(gelu_tanh_argument(x));
  const V slope =
      fma(hn::Mul(x, x), constant<V>(static_cast<Lane<V>>(kThreeCubic)), constant<V>(static_cast<Lane<V>>(kLinear)));
  return fma(hn::Mul(hn::Mul(s, t), x), slope, s);
}

}  // namespace stepwell::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
