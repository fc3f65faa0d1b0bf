// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/mlstm/cell_simd.cc"
#include "ops/mlstm/cell_simd.h"

#include <algorithm>
#include <cmath>

#include "hwy/foreach_target.h"

#include "simd/math-inl.h"
#include "simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

// values[t] = function of values[t], for n numbers.
template <class T, class F>
HWY_INLINE void apply(T* values, std::int64_t n, F function) {
  for_vectors<T>(n, [&](std::int64_t t, std::int64_t lanes)
                        HWY_ATTR { store_part<T>(function(load_part(values + t, lanes)), values + t, lanes); });
}

template <class T>
void mlstm_gates_t(const MlstmHead<T>& head, T m, const MlstmGates<T>& out, Arena& scratch) {
  ArenaScope scope(scratch);
  const std::int64_t tokens = head.tokens;
  // In double: with |m| in the hundreds, differences of floats would cost digits of F and I.
  double* log_forget = scratch.allocate<double>(tokens);
  for (std::int64_t t = 0; t < tokens; ++t) {
    log_forget[t] = *head.f.row(t);
    out.input[t] = *head.i.row(t);
  }
  apply(log_forget, tokens, [](Vec<double> x) HWY_ATTR { return log_sigmoid(x); });
  if (head.sigmoid) {
    for (std::int64_t t = 0; t < tokens; ++t) out.log_decay[t] = static_cast<T>(log_forget[t]);
    apply(out.input, tokens, [](Vec<T> x) HWY_ATTR { return sigmoid(x); });
    std::fill_n(out.m, tokens, T(0));
    return;
  }
  for (std::int64_t t = 0; t < tokens; ++t) {
    const double kept = log_forget[t] + static_cast<double>(m), input = out.input[t];
    m = static_cast<T>(std::max(kept, input));
    const bool nothing = std::isinf(m) && m < 0;  // neither a past nor an input: −∞ − (−∞)
    out.log_decay[t] = nothing ? T(0) : static_cast<T>(kept - static_cast<double>(m));
    if (!nothing) out.input[t] = static_cast<T>(input - static_cast<double>(m));
    out.m[t] = m;
  }
  apply(out.input, tokens, [](Vec<T> x) HWY_ATTR { return exp(x); });
}

// F of every token, as the matrix memory computes it.
template <class T>
T* decays_of(const MlstmGates<const T>& gates, std::int64_t tokens, Arena& scratch) {
  T* decays = scratch.allocate<T>(tokens);
  std::copy_n(gates.log_decay, tokens, decays);
  apply(decays, tokens, [](Vec<T> x) HWY_ATTR { return exp(x); });
  return decays;
}

// n = F·n + I·k.
template <class T>
HWY_INLINE void advance_normaliser(const T* k, T decay, T input, std::int64_t K, const T* before, T* n) {
  for_vectors<T>(K, [&](std::int64_t d, std::int64_t lanes) HWY_ATTR {
    const Vec<T> kept = hn::Mul(set(decay), load_part(before + d, lanes));
    store_part<T>(fma(load_part(k + d, lanes), set(input), kept), n + d, lanes);
  });
}

template <class T>
void mlstm_normaliser_t(const MlstmHead<T>& head, const MlstmNormaliser<T>& work, Arena& scratch) {
  ArenaScope scope(scratch);
  const T* decays = decays_of(work.gates, head.tokens, scratch);
  for (std::int64_t t = 0; t < head.tokens; ++t) {
    if (work.states && t % kCheckpointTokens == 0) {
      std::copy_n(work.n, head.K, work.states + t / kCheckpointTokens * head.K);
    }
    advance_normaliser(head.k.row(t), decays[t], work.gates.input[t], head.K, work.n, work.n);
    work.a[t] = head.scale * dot16(head.q.row(t), static_cast<const T*>(work.n), head.K);
  }
}

// For m < 0 multiplied through by exp(m), so that exp(−m) never overflows.
template <class T>
void mlstm_factors_t(const MlstmHead<T>& head, const T* a, const T* m, T* factors) {
  if (!head.normalise) {
    std::fill_n(factors, head.tokens, T(1));
    return;
  }
  const Vec<T> eps = set(head.eps), one = set(T(1));
  for_vectors<T>(head.tokens, [&](std::int64_t t, std::int64_t lanes) HWY_ATTR {
    const Vec<T> stabiliser = load_part(m + t, lanes), e = exp(hn::Neg(hn::Abs(stabiliser)));
    const auto low = hn::Lt(stabiliser, zero<T>());
    const Vec<T> size = hn::Abs(load_part(a + t, lanes)), unit = hn::IfThenElse(low, e, one);
    const Vec<T> floor = hn::IfThenElse(low, one, e), scaled = hn::Mul(size, unit);
    const Vec<T> larger = hn::IfThenElse(hn::Lt(scaled, floor), floor, scaled);  // a NaN stays
    store_part<T>(hn::Div(unit, fma(eps, unit, larger)), factors + t, lanes);
  });
}

template <class T>
void mlstm_scale_rows_t(const MlstmScaling<T>& work) {
  for (std::int64_t t = 0; t < work.tokens; ++t) {
    const T* in = work.in.row(t);
    if (work.along) work.along[t] = dot16(in, work.h.row(t), work.V);
    const Vec<T> factor = set(work.factors[t]);
    for_vectors<T>(work.V, [&](std::int64_t c, std::int64_t lanes) HWY_ATTR {
      store_part<T>(hn::Mul(factor, load_part(in + c, lanes)), work.out.row(t) + c, lanes);
    });
  }
}

// The gradient of a: what the denominator lets through, none where the floor rules.
template <class T>
HWY_INLINE T grad_of_a(const MlstmHead<T>& head, T a, T m, T factor, T along) {
  if (!head.normalise || a == 0) return 0;
  // |a| against exp(−m), without overflow.
  const Vec<T> e = exp(set(-std::abs(m)));
  const T power = hn::GetLane(e), size = m < 0 ? std::abs(a) * power : std::abs(a), floor = m < 0 ? T(1) : power;
  if (size < floor) return 0;
  const T full = a > 0 ? -factor * along : factor * along;
  return size == floor ? full / 2 : full;
}

template <class T>
void mlstm_adjoint_t(const MlstmHead<T>& head, MlstmAdjoint<T>& work, Arena& scratch) {
  ArenaScope scope(scratch);
  const std::int64_t K = head.K;
  const T* decays = decays_of(work.gates, head.tokens, scratch);
  T* factors = scratch.allocate<T>(head.tokens);
  mlstm_factors_t(head, work.a, work.gates.m, factors);
  T pull = work.pull, residue = 0;
  T* normalisers = scratch.allocate<T>((kCheckpointTokens + 1) * K);  // of a span, n before its first token first
  for (std::int64_t end = head.tokens; end > 0;) {
    const std::int64_t first = (end - 1) / kCheckpointTokens * kCheckpointTokens;
    std::copy_n(work.states + first / kCheckpointTokens * K, K, normalisers);
    for (std::int64_t t = first; t < end; ++t) {
      T* n = normalisers + (t - first) * K;
      advance_normaliser<T>(head.k.row(t), decays[t], work.gates.input[t], K, n, n + K);
    }
    for (std::int64_t t = end - 1; t >= first; --t) {
      const T *before = normalisers + (t - first) * K, *n = before + K, *q = head.q.row(t), *k = head.k.row(t);
      const T m = work.gates.m[t], m_before = t > 0 ? work.gates.m[t - 1] : work.m_before;
      const T grad_a = grad_of_a(head, work.a[t], m, factors[t], work.along[t]), a = head.scale * grad_a;
      T grad_input = work.grad_input[t], grad_log = work.grad_log_decay[t];
      if (head.normalise) {
        for_vectors<T>(K, [&](std::int64_t d, std::int64_t lanes) HWY_ATTR {
          const Vec<T> grad = fma(set(a), load_part(q + d, lanes), load_part(work.grad_n + d, lanes));
          store_part<T>(grad, work.grad_n + d, lanes);
          if (work.grad_q) {
            T* out = work.grad_q.row(t) + d;
            store_part<T>(fma(set(a), load_part(n + d, lanes), load_part(out, lanes)), out, lanes);
          }
          if (work.grad_k) {
            T* out = work.grad_k.row(t) + d;
            store_part<T>(fma(set(work.gates.input[t]), grad, load_part(out, lanes)), out, lanes);
          }
        });
        grad_input += dot16(k, static_cast<const T*>(work.grad_n), K);
        grad_log += decays[t] * dot16(static_cast<const T*>(work.grad_n), before, K);
        apply(work.grad_n, K, [&](Vec<T> x) HWY_ATTR { return hn::Mul(set(decays[t]), x); });
      }
      const Vec<T> f = set(*head.f.row(t)), i = set(*head.i.row(t));
      grad_input *= work.gates.input[t];
      if (head.sigmoid) {
        grad_input *= hn::GetLane(sigmoid(hn::Neg(i)));
      } else {
        work.mu -= head.eps * factors[t] * work.along[t];
        const double kept = hn::GetLane(log_sigmoid(set(static_cast<double>(*head.f.row(t))))) + m_before;
        const double input = *head.i.row(t);
        const T from_past = kept > input ? T(1) : kept < input ? T(0) : T(0.5);
        // Both gates together receive what the next forget gate and the output give. i's gradients cancel in their sum
        // over tokens, and rounding would be most of what is left: what the two differ by goes to the input that set m.
        residue += grad_input + grad_log - (pull + (work.along[t] + work.a[t] * grad_a));
        pull = grad_log;
        grad_input += (1 - from_past) * (work.mu - residue);
        grad_log += from_past * work.mu;
        work.mu *= from_past;
        residue *= from_past;
      }
      work.grad_input[t] = grad_input;
      work.grad_log_decay[t] = grad_log * hn::GetLane(sigmoid(hn::Neg(f)));
    }
    end = first;
  }
}

void mlstm_gates_f32(const MlstmHead<float>& head, float m, const MlstmGates<float>& out, Arena& scratch) {
  mlstm_gates_t(head, m, out, scratch);
}
void mlstm_gates_f64(const MlstmHead<double>& head, double m, const MlstmGates<double>& out, Arena& scratch) {
  mlstm_gates_t(head, m, out, scratch);
}
void mlstm_normaliser_f32(const MlstmHead<float>& head, const MlstmNormaliser<float>& work, Arena& scratch) {
  mlstm_normaliser_t(head, work, scratch);
}
void mlstm_normaliser_f64(const MlstmHead<double>& head, const MlstmNormaliser<double>& work, Arena& scratch) {
  mlstm_normaliser_t(head, work, scratch);
}
void mlstm_factors_f32(const MlstmHead<float>& head, const float* a, const float* m, float* factors) {
  mlstm_factors_t(head, a, m, factors);
}
void mlstm_factors_f64(const MlstmHead<double>& head, const double* a, const double* m, double* factors) {
  mlstm_factors_t(head, a, m, factors);
}
void mlstm_scale_rows_f32(const MlstmScaling<float>& work) { mlstm_scale_rows_t(work); }
void mlstm_scale_rows_f64(const MlstmScaling<double>& work) { mlstm_scale_rows_t(work); }
void mlstm_adjoint_f32(const MlstmHead<float>& head, MlstmAdjoint<float>& work, Arena& scratch) {
  mlstm_adjoint_t(head, work, scratch);
}
void mlstm_adjoint_f64(const MlstmHead<double>& head, MlstmAdjoint<double>& work, Arena& scratch) {
  mlstm_adjoint_t(head, work, scratch);
}
float mlstm_dot_f32(const float* x, const float* y, std::int64_t n) { return dot16(x, y, n); }
double mlstm_dot_f64(const double* x, const double* y, std::int64_t n) { return dot16(x, y, n); }

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(mlstm_gates_f32);
HWY_EXPORT(mlstm_gates_f64);
HWY_EXPORT(mlstm_normaliser_f32);
HWY_EXPORT(mlstm_normaliser_f64);
HWY_EXPORT(mlstm_factors_f32);
HWY_EXPORT(mlstm_factors_f64);
HWY_EXPORT(mlstm_scale_rows_f32);
HWY_EXPORT(mlstm_scale_rows_f64);
HWY_EXPORT(mlstm_adjoint_f32);
HWY_EXPORT(mlstm_adjoint_f64);
HWY_EXPORT(mlstm_dot_f32);
HWY_EXPORT(mlstm_dot_f64);

void mlstm_gates(const MlstmHead<float>& head, float m, const MlstmGates<float>& out, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(mlstm_gates_f32)(head, m, out, scratch);
}
void mlstm_gates(const MlstmHead<double>& head, double m, const MlstmGates<double>& out, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(mlstm_gates_f64)(head, m, out, scratch);
}
void mlstm_normaliser(const MlstmHead<float>& head, const MlstmNormaliser<float>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(mlstm_normaliser_f32)(head, work, scratch);
}
void mlstm_normaliser(const MlstmHead<double>& head, const MlstmNormaliser<double>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(mlstm_normaliser_f64)(head, work, scratch);
}
void mlstm_factors(const MlstmHead<float>& head, const float* a, const float* m, float* factors) {
  HWY_DYNAMIC_DISPATCH(mlstm_factors_f32)(head, a, m, factors);
}
void mlstm_factors(const MlstmHead<double>& head, const double* a, const double* m, double* factors) {
  HWY_DYNAMIC_DISPATCH(mlstm_factors_f64)(head, a, m, factors);
}
void mlstm_scale_rows(const MlstmScaling<float>& work) { HWY_DYNAMIC_DISPATCH(mlstm_scale_rows_f32)(work); }
void mlstm_scale_rows(const MlstmScaling<double>& work) { HWY_DYNAMIC_DISPATCH(mlstm_scale_rows_f64)(work); }
void mlstm_adjoint(const MlstmHead<float>& head, MlstmAdjoint<float>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(mlstm_adjoint_f32)(head, work, scratch);
}
void mlstm_adjoint(const MlstmHead<double>& head, MlstmAdjoint<double>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(mlstm_adjoint_f64)(head, work, scratch);
}
float mlstm_dot(const float* x, const float* y, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(mlstm_dot_f32)(x, y, n); }
double mlstm_dot(const double* x, const double* y, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(mlstm_dot_f64)(x, y, n);
}

}  // namespace stepwell::ops
#endif
