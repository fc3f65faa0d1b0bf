// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// log and log1p on full vectors, float or double. Numbers below the smallest normal count as 0.
#if defined(STEPWELL_SIMD_LOG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_SIMD_LOG_INL_H_
#undef STEPWELL_SIMD_LOG_INL_H_
#else
#define STEPWELL_SIMD_LOG_INL_H_
#endif

#include <limits>

#include "simd/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::simd::HWY_NAMESPACE {

// kOffset moves mantissas of [4/3, 2) to the next exponent: x = 2ᵏ·m with m in [2/3, 4/3). kBias + 2^p as a float holds
// k's biased form in its low bits. kLog: float, minimax of (log(1+f)−f)/f²; double, of (2·atanh(s)/s−2)/s² in s².
// kLog1p: minimax of (log(1+x)−x)/x² for 0 ≤ x ≤ 1.
template <class T>
struct LogConstants;
template <>
struct LogConstants<float> {
  static constexpr std::uint32_t kOffset = 0x3F800000u - 0x3F2AAAABu, kOne = 0x3F800000u, kTwoBias = 254;
  static constexpr float kCounter = 0x1p23f, kCounterBias = 0x1p23f + 127;
  static constexpr float kLog[] = {-0x1p-1f,       0x1.555502p-2f,  -0x1.fffe86p-3f, 0x1.99d1f8p-3f, -0x1.55a71ap-3f,
                                   0x1.1ebe12p-3f, -0x1.f26272p-4f, 0x1.1ed2f2p-3f,  -0x1.092a06p-3f};
  static constexpr float kLog1p[] = {-0x1.ffffbep-2f, 0x1.554c8p-2f,  -0x1.ff0f8p-3f, 0x1.92f65ap-3f, -0x1.39747ep-3f,
                                     0x1.b24fe8p-4f,  -0x1.d2955p-5f, 0x1.45369ep-6f, -0x1.a923c6p-9f};
};
template <>
struct LogConstants<double> {
  static constexpr std::uint64_t kOffset = 0x3FF0000000000000u - 0x3FE5555555555555u, kOne = 0x3FF0000000000000u,
                                 kTwoBias = 2046;
  static constexpr double kCounter = 0x1p52, kCounterBias = 0x1p52 + 1023;
  static constexpr double kLog[] = {0x1.555555555578p-1,  0x1.99999998ee2dap-2, 0x1.249249b3f06eap-2,
                                    0x1.c71c003e185b3p-3, 0x1.747511b982888p-3, 0x1.384f2c378dbaap-3,
                                    0x1.3adaa32520af3p-3};
  static constexpr double kLog1p[] = {-0x1.fffffffffffe6p-2,  0x1.555555555445ep-2,  -0x1.ffffffff754bp-3,
                                      0x1.99999986c1b5p-3,    -0x1.555553c228667p-3, 0x1.249232832bb8ap-3,
                                      -0x1.fffe312b637e7p-4,  0x1.c70ebdedc25bfp-4,  -0x1.994a4d0509c74p-4,
                                      0x1.72f6b3795b7a5p-4,   -0x1.504e0d0378577p-4, 0x1.2c8472366546ap-4,
                                      -0x1.022b7123f0159p-4,  0x1.9be628b725b49p-5,  -0x1.24edf7ace0bfp-5,
                                      0x1.63a9db361271ep-6,   -0x1.600e22ab25db7p-7, 0x1.0d574369896p-8,
                                      -0x1.283380e2aa81cp-10, 0x1.9e307b9ab75e6p-13, -0x1.1371c9eaca0c4p-16};
};

// k·ln 2 + log(1 + f), |f| ≤ 1/3.
template <class V>
HWY_INLINE V log_kernel(V f, V k) {
  using T = Lane<V>;
  using C = LogConstants<T>;
  const V low = hn::Mul(k, constant<V>(ExpConstants<T>::kLn2Low));
  V y;
  if constexpr (std::is_same_v<T, float>) {
    y = fma(hn::Mul(f, f), polynomial(f, C::kLog), low);
  } else {
    // log(1+f) = 2·atanh(s) = f − s·(f − s²·R), s = f/(2+f)
    const V s = hn::Div(f, hn::Add(f, constant<V>(2)));
    const V z = hn::Mul(s, s);
    y = fnma(s, hn::Sub(f, hn::Mul(z, polynomial(z, C::kLog))), low);
  }
  return fma(k, constant<V>(ExpConstants<T>::kLn2High), hn::Add(y, f));
}

// x = 2ᵏ·m for normal x > 0: k in biased form, k as a number, and m − 1 (exact).
template <class V>
struct LogReduced {
  decltype(bits(V())) biased;
  V k, f;
};
template <class V>
HWY_INLINE LogReduced<V> reduce_log(V x) {
  using T = Lane<V>;
  using C = LogConstants<T>;
  constexpr int kMantissa = ExpConstants<T>::kMantissa;
  const auto biased = hn::ShiftRight<kMantissa>(hn::Add(bits(x), constant_bits<V>(C::kOffset)));
  const auto exponent = hn::Sub(hn::ShiftLeft<kMantissa>(biased), constant_bits<V>(C::kOne));
  const V m = from_bits<V>(hn::Sub(bits(x), exponent));
  const V k = hn::Sub(from_bits<V>(hn::Or(biased, bits(constant<V>(C::kCounter)))), constant<V>(C::kCounterBias));
  return {biased, k, hn::Sub(m, constant<V>(1))};
}

// log x. Largest error 1 ulp. log(0) = −inf, NaN below 0.
template <class V>
HWY_INLINE V log(V x) {
  using Limits = std::numeric_limits<Lane<V>>;
  const auto [biased, k, f] = reduce_log(x);
  V y = log_kernel(f, k);
  y = hn::IfThenElse(hn::Le(x, constant<V>(Limits::max())), y, x);  // inf and NaN stay
  const V below =
      hn::IfThenElse(hn::Lt(x, constant<V>(0)), constant<V>(Limits::quiet_NaN()), constant<V>(-Limits::infinity()));
  return hn::IfThenElse(hn::Lt(x, constant<V>(Limits::min())), below, y);
}

// log(1 + x) where −1 < x ≤ 2⁶⁰ is known (or NaN): u = 1 + x rounded picks k, and what the rounding lost is added to m.
template <class V>
HWY_INLINE V log1p_bounded(V x) {
  using C = LogConstants<Lane<V>>;
  const V one = constant<V>(1);
  const V u = hn::Add(x, one);
  const V lost = hn::Sub(x, hn::Sub(u, one));
  const auto [biased, k, f] = reduce_log(u);
  const V power =
      from_bits<V>(hn::ShiftLeft<ExpConstants<Lane<V>>::kMantissa>(hn::Sub(constant_bits<V>(C::kTwoBias), biased)));
  return log_kernel(fma(lost, power, f), k);
}

// log(1 + x) where 0 ≤ x ≤ 1 is known (or NaN): no reduction. Largest error 1 ulp.
template <class V>
HWY_INLINE V log1p_unit(V x) {
  return fma(hn::Mul(x, polynomial(x, LogConstants<Lane<V>>::kLog1p)), x, x);
}

// log(1 + x). Largest error 1.5 ulp. ±0 kept, log1p(−1) = −inf, NaN below.
template <class V>
HWY_INLINE V log1p(V x) {
  using Limits = std::numeric_limits<Lane<V>>;
  V y = hn::IfThenElse(hn::Lt(constant<V>(0x1p60f), x), log(x), log1p_bounded(x));
  const V below =
      hn::IfThenElse(hn::Lt(x, constant<V>(-1)), constant<V>(Limits::quiet_NaN()), constant<V>(-Limits::infinity()));
  y = hn::IfThenElse(hn::Le(x, constant<V>(-1)), below, y);
  return hn::IfThenElse(hn::Eq(x, constant<V>(0)), x, y);
}

}  // namespace stepwell::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
