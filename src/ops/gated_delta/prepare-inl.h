// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// What tokens enter the recurrence with: normalised q and k, decays, erase vectors. The only copy, for every form.
#if defined(STEPWELL_OPS_GATED_DELTA_PREPARE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_OPS_GATED_DELTA_PREPARE_INL_H_
#undef STEPWELL_OPS_GATED_DELTA_PREPARE_INL_H_
#else
#define STEPWELL_OPS_GATED_DELTA_PREPARE_INL_H_
#endif

#include <cmath>

#include "ops/gated_delta/delta_head.h"
#include "simd/math-inl.h"
#include "simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

// The log decay of g, `bias` added where the gate has one; `slope` is exp(A_log).
template <class T>
HWY_INLINE Vec<T> log_decay(const DeltaHead<T>& head, Vec<T> g, Vec<T> bias, Vec<T> slope) {
  if (head.gate == DecayGate::Given) return g;
  const Vec<T> raw = hn::Add(g, bias);
  if (head.gate == DecayGate::Softplus) return hn::Mul(hn::Neg(slope), softplus(raw));
  return hn::Mul(set(head.lower_bound), sigmoid(hn::Mul(slope, raw)));
}

// exp(g) of tokens first … first+tokens−1 to decays [tokens, K], or to [tokens] where the head has one per token.
template <class T>
HWY_INLINE void prepare_decays(const DeltaHead<T>& head, std::int64_t first, std::int64_t tokens, T* decays) {
  const Vec<T> slope = exp(set(head.A_log));
  if (!head.g.channels) {
    const Vec<T> bias = set(head.dt_bias ? head.dt_bias[0] : T(0));
    for (std::int64_t t = 0; t < tokens; ++t) decays[t] = *head.g.row(first + t);
    for_vectors<T>(tokens, [&](std::int64_t t, std::int64_t lanes) {
      store_part<T>(exp(log_decay(head, load_part(decays + t, lanes), bias, slope)), decays + t, lanes);
    });
    return;
  }
  for (std::int64_t t = 0; t < tokens; ++t, decays += head.K) {
    const T* g = head.g.row(first + t);
    for_vectors<T>(head.K, [&](std::int64_t d, std::int64_t lanes) {
      const Vec<T> bias = head.dt_bias ? load_part(head.dt_bias + d, lanes) : zero<T>();
      store_part<T>(exp(log_decay(head, load_part(g + d, lanes), bias, slope)), decays + d, lanes);
    });
  }
}

// 1/√(Σx² + 1e-6), and the row times that to `out`.
template <class T>
HWY_INLINE T normalise_row(const T* x, std::int64_t n, T* out) {
  const T factor = 1 / std::sqrt(dot16(x, x, n) + T(1e-6));
  for_vectors<T>(n, [&](std::int64_t i, std::int64_t lanes) {
    store_part<T>(hn::Mul(set(factor), load_part(x + i, lanes)), out + i, lanes);
  });
  return factor;
}

// b⊙k of one token to e [K].
template <class T>
HWY_INLINE void erase_row(const DeltaHead<T>& head, std::int64_t t, const T* k, T* e) {
  const T* b = head.b.row(t);
  for_vectors<T>(head.K, [&](std::int64_t d, std::int64_t lanes) {
    const Vec<T> gate = head.b.channels ? load_part(b + d, lanes) : set(*b);
    store_part<T>(hn::Mul(gate, load_part(k + d, lanes)), e + d, lanes);
  });
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
