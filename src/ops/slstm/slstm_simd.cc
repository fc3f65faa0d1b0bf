// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/slstm/slstm_simd.cc"
#include "ops/slstm/slstm_simd.h"

#include <algorithm>
#include <limits>

#include "hwy/foreach_target.h"

#include "simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

// out += Rᵀ y for N whole vectors of columns from R [D, width].
template <int N, class T>
HWY_INLINE void add_products(const T* R, const T* y, std::int64_t D, std::int64_t width, T* out) {
  Vec<T> sum[N];
#pragma GCC unroll 16
  for (int j = 0; j < N; ++j) sum[j] = load(out + j * kWidth<T>);
  for (std::int64_t d = 0; d < D; ++d, R += width) {
    const Vec<T> factor = set(y[d]);
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) sum[j] = fma(factor, load(R + j * kWidth<T>), sum[j]);
  }
#pragma GCC unroll 16
  for (int j = 0; j < N; ++j) store(sum[j], out + j * kWidth<T>);
}

template <class T>
HWY_INLINE void add_recurrence(const T* R, const T* y, std::int64_t D, T* raw) {
  constexpr std::int64_t W = kWidth<T>, kBlock = 8;
  const std::int64_t width = 4 * D;
  std::int64_t i = 0;
  for (; i + kBlock * W <= width; i += kBlock * W) add_products<kBlock>(R + i, y, D, width, raw + i);
  for (; i < width; i += W) {
    const std::int64_t lanes = std::min(W, width - i);
    Vec<T> sum = load_part(raw + i, lanes);
    for (std::int64_t d = 0; d < D; ++d) sum = fma(set(y[d]), load_part(R + d * width + i, lanes), sum);
    store_part<T>(sum, raw + i, lanes);
  }
}

// I, F and m' of some units, and how much of m' is the past's: 1, 0, or ½ where the two are equal.
template <class T>
struct GateLanes {
  Vec<T> input, forget, m, past;
};

template <class T>
HWY_INLINE GateLanes<T> gates_of(Vec<T> i, Vec<T> f, Vec<T> n, Vec<T> m) {
  const Vec<T> one = set(T(1)), none = zero<T>();
  const Vec<T> log_forget = log_sigmoid(f), kept = hn::Add(log_forget, m);
  // What the sum lost in rounding, so that F belongs to the m that is stored and m' may be hundreds.
  const Vec<T> part = hn::Sub(kept, log_forget);
  Vec<T> lost = hn::Add(hn::Sub(log_forget, hn::Sub(kept, part)), hn::Sub(m, part));
  lost = hn::IfThenElse(hn::Le(hn::Abs(kept), set(std::numeric_limits<T>::max())), lost, none);
  const auto fresh = hn::Eq(n, none);
  const Vec<T> larger = hn::IfThenElse(hn::Lt(kept, i), i, kept);
  GateLanes<T> g;
  g.m = hn::IfThenElse(fresh, i, larger);
  g.input = exp(hn::Sub(i, g.m));
  g.forget = exp(hn::Add(hn::Sub(kept, g.m), lost));
  // Where nothing was ever written, what is kept may be of any size.
  g.forget = hn::IfThenElse(hn::And(fresh, hn::Lt(one, g.forget)), one, g.forget);
  const auto nothing = hn::Eq(g.m, set(-std::numeric_limits<T>::infinity()));  // −∞ − (−∞)
  g.input = hn::IfThenElse(nothing, none, g.input);
  g.forget = hn::IfThenElse(nothing, one, g.forget);
  const Vec<T> equal = hn::IfThenElse(hn::Eq(kept, i), set(T(0.5)), none);
  g.past = hn::IfThenElse(fresh, none, hn::IfThenElse(hn::Lt(i, kept), one, equal));
  return g;
}

// numerator/n, 0 where n is.
template <class T>
HWY_INLINE Vec<T> over_normaliser(Vec<T> numerator, Vec<T> n) {
  return hn::IfThenElse(hn::Eq(n, zero<T>()), zero<T>(), hn::Div(numerator, n));
}

// Moves the state on with the pre-activations raw [4, D].
template <class T>
HWY_INLINE void advance(const T* raw, std::int64_t D, const SlstmCells<T>& state) {
  for_vectors<T>(D, [&](std::int64_t d, std::int64_t lanes) HWY_ATTR {
    const auto part = [&](const T* p) HWY_ATTR { return load_part(p + d, lanes); };
    const Vec<T> n = part(state.n);
    const GateLanes<T> g = gates_of<T>(part(raw), part(raw + D), n, part(state.m));
    const Vec<T> c_new = fma(g.forget, part(state.c), hn::Mul(g.input, tanh(part(raw + 2 * D))));
    const Vec<T> n_new = fma(g.forget, n, g.input);
    store_part<T>(c_new, state.c + d, lanes);
    store_part<T>(n_new, state.n + d, lanes);
    store_part<T>(g.m, state.m + d, lanes);
    store_part<T>(over_normaliser<T>(hn::Mul(sigmoid(part(raw + 3 * D)), c_new), n_new), state.y + d, lanes);
  });
}

template <class T>
void slstm_forward_t(const SlstmHead<T>& head, const SlstmCells<T>& state, HeadRows<T> y, HeadRows<T> trace,
                     Arena& scratch) {
  ArenaScope scope(scratch);
  const std::int64_t D = head.D;
  T* own = trace ? nullptr : scratch.allocate<T>(4 * D);
  for (std::int64_t t = 0; t < head.tokens; ++t) {
    scratch.check_interrupt();
    T* raw = trace ? trace.row(t) : own;
    for (std::int64_t g = 0; g < 4; ++g) {
      const T *x = head.x.row(t) + g * head.gate, *bias = head.bias ? head.bias + g * head.gate : nullptr;
      for_vectors<T>(D, [&](std::int64_t d, std::int64_t lanes) HWY_ATTR {
        const Vec<T> v = load_part(x + d, lanes);
        store_part<T>(bias ? hn::Add(v, load_part(bias + d, lanes)) : v, raw + g * D + d, lanes);
      });
    }
    add_recurrence(head.R, static_cast<const T*>(state.y), D, raw);
    advance(raw, D, state);
    std::copy_n(state.y, D, y.row(t));
    if (!trace) continue;
    std::copy_n(state.c, D, raw + 4 * D);
    std::copy_n(state.n, D, raw + 5 * D);
    std::copy_n(state.m, D, raw + 6 * D);
  }
}

// out = Rᵀ raw, R [4·D, D]: one chain over the units for each gate, the four added in pairs.
template <class T>
HWY_INLINE void recurrence_adjoint(const T* R, const T* raw, std::int64_t D, T* out) {
  for_vectors<T>(D, [&](std::int64_t d, std::int64_t lanes) HWY_ATTR {
    Vec<T> sum[4] = {zero<T>(), zero<T>(), zero<T>(), zero<T>()};
    for (std::int64_t row = 0; row < D; ++row) {
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g) {
        const std::int64_t at = g * D + row;
        sum[g] = fma(set(raw[at]), load_part(R + at * D + d, lanes), sum[g]);
      }
    }
    store_part<T>(hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3])), out + d, lanes);
  });
}

// One token of the adjoint: raw [4, D] takes the gradients of the pre-activations, grad and mu go back a token.
template <class T>
struct AdjointToken {
  const T *trace, *y, *grad_y;
  SlstmCells<const T> before;
  T *raw, *mu;
};
template <class T>
HWY_INLINE void adjoint_token(const AdjointToken<T>& token, std::int64_t D, const SlstmCells<T>& grad) {
  for_vectors<T>(D, [&](std::int64_t d, std::int64_t lanes) HWY_ATTR {
    const auto part = [&](const T* p) HWY_ATTR { return load_part(p + d, lanes); };
    const T* raw = token.trace;
    const Vec<T> i = part(raw), f = part(raw + D), z = part(raw + 2 * D), o = part(raw + 3 * D);
    const Vec<T> c_before = part(token.before.c), n_before = part(token.before.n), n = part(raw + 5 * D);
    const GateLanes<T> g = gates_of<T>(i, f, n_before, part(token.before.m));
    const auto [o_open, o_shut] = sigmoid_pair(o);
    const Vec<T> arriving = token.grad_y ? hn::Add(part(token.grad_y), part(grad.y)) : part(grad.y);
    const Vec<T> y = part(token.y), share = over_normaliser<T>(arriving, n);
    const Vec<T> dc = fma(share, o_open, part(grad.c)), dn = fnma(share, y, part(grad.n));
    const Vec<T> mu = part(token.mu), mu_past = hn::Mul(g.past, mu);
    const Vec<T> memory = fma(dc, c_before, hn::Mul(dn, n_before));
    const Vec<T> kept = fma(g.forget, memory, mu_past);
    store_part<T>(fma(g.input, fma(tanh(z), dc, dn), hn::Sub(mu, mu_past)), token.raw + d, lanes);
    store_part<T>(hn::Mul(kept, sigmoid(hn::Neg(f))), token.raw + D + d, lanes);
    store_part<T>(hn::Mul(hn::Mul(dc, g.input), tanh_derivative(z)), token.raw + 2 * D + d, lanes);
    store_part<T>(hn::Mul(hn::Mul(arriving, y), o_shut), token.raw + 3 * D + d, lanes);
    store_part<T>(mu_past, token.mu + d, lanes);
    store_part<T>(hn::Mul(g.forget, dc), grad.c + d, lanes);
    store_part<T>(hn::Mul(g.forget, dn), grad.n + d, lanes);
    store_part<T>(kept, grad.m + d, lanes);
  });
}

template <class T>
void slstm_adjoint_t(const SlstmHead<T>& head, const SlstmAdjoint<T>& work, Arena& scratch) {
  if (head.tokens == 0) return;
  ArenaScope scope(scratch);
  const std::int64_t D = head.D;
  T *raw = scratch.allocate<T>(4 * D), *mu = scratch.allocate<T>(D);
  const auto state_after = [&](std::int64_t t) {
    const T* row = work.trace.row(t);
    return SlstmCells<const T>{work.y.row(t), row + 4 * D, row + 5 * D, row + 6 * D};
  };
  // The gradient of the last m with the true memory, c·eᵐ and n·eᵐ, held fixed.
  const SlstmCells<const T> end = state_after(head.tokens - 1);
  for_vectors<T>(D, [&](std::int64_t d, std::int64_t lanes) HWY_ATTR {
    const auto part = [&](const T* p) HWY_ATTR { return load_part(p + d, lanes); };
    const Vec<T> less = fnma(part(work.grad.c), part(end.c), part(work.grad.m));
    store_part<T>(fnma(part(work.grad.n), part(end.n), less), mu + d, lanes);
  });
  for (std::int64_t t = head.tokens - 1; t >= 0; --t) {
    scratch.check_interrupt();
    const T* grad_y = work.grad_y ? work.grad_y.row(t) : nullptr;
    const SlstmCells<const T> before = t == 0 ? work.start : state_after(t - 1);
    adjoint_token<T>({work.trace.row(t), work.y.row(t), grad_y, before, raw, mu}, D, work.grad);
    recurrence_adjoint(head.R, static_cast<const T*>(raw), D, work.grad.y);
    for (std::int64_t g = 0; g < 4; ++g) std::copy_n(raw + g * D, D, work.grad_x.row(t) + g * head.gate);
  }
}

void slstm_forward_f32(const SlstmHead<float>& head, const SlstmCells<float>& state, HeadRows<float> y,
                       HeadRows<float> trace, Arena& scratch) {
  slstm_forward_t(head, state, y, trace, scratch);
}
void slstm_forward_f64(const SlstmHead<double>& head, const SlstmCells<double>& state, HeadRows<double> y,
                       HeadRows<double> trace, Arena& scratch) {
  slstm_forward_t(head, state, y, trace, scratch);
}
void slstm_adjoint_f32(const SlstmHead<float>& head, const SlstmAdjoint<float>& work, Arena& scratch) {
  slstm_adjoint_t(head, work, scratch);
}
void slstm_adjoint_f64(const SlstmHead<double>& head, const SlstmAdjoint<double>& work, Arena& scratch) {
  slstm_adjoint_t(head, work, scratch);
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(slstm_forward_f32);
HWY_EXPORT(slstm_forward_f64);
HWY_EXPORT(slstm_adjoint_f32);
HWY_EXPORT(slstm_adjoint_f64);

void slstm_forward(const SlstmHead<float>& head, const SlstmCells<float>& state, HeadRows<float> y,
                   HeadRows<float> trace, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(slstm_forward_f32)(head, state, y, trace, scratch);
}
void slstm_forward(const SlstmHead<double>& head, const SlstmCells<double>& state, HeadRows<double> y,
                   HeadRows<double> trace, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(slstm_forward_f64)(head, state, y, trace, scratch);
}
void slstm_adjoint(const SlstmHead<float>& head, const SlstmAdjoint<float>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(slstm_adjoint_f32)(head, work, scratch);
}
void slstm_adjoint(const SlstmHead<double>& head, const SlstmAdjoint<double>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(slstm_adjoint_f64)(head, work, scratch);
}

}  // namespace stepwell::ops
#endif
