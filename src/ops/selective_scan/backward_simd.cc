// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/selective_scan/backward_simd.cc"
#include "hwy/foreach_target.h"

#include "ops/selective_scan/selective_scan_simd.h"
#include "ops/selective_scan/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

// Scratch of one span. [tokens, kBlock] unless said otherwise.
template <class T>
struct SpanBuffers {
  ScanTile<T> tile;
  T* grad_q;        // gradient of the sum before the gate
  T* gate_slope;    // grad_y·silu'(z)
  T* states;        // [tokens + 1, N, kBlock], before each token
  T* through_B;     // Σ_n lam·B (zero-order: lam·φ·B); times the step, a gradient of u
  T* through_step;  // gradient of the step; in Euler's form without its share through the input, through_B·u
  T* A;             // [N, kBlock] gradient of A from this span alone
};

// φ'(x) = (eˣ − φ(x))/x; near 0 its series Σ k x^(k−1)/(k+1)!, where the quotient would lose its digits.
template <class V>
HWY_INLINE V phi_derivative(V x) {
  using T = Lane<V>;
  static constexpr T kSeries[] = {
      T(1.0 / 2),        T(1.0 / 3),         T(1.0 / 8),          T(1.0 / 30),          T(1.0 / 144),
      T(1.0 / 840),      T(1.0 / 5760),      T(1.0 / 45360),      T(1.0 / 403200),      T(1.0 / 3991680),
      T(1.0 / 43545600), T(1.0 / 518918400), T(1.0 / 6706022400), T(1.0 / 93405312000), T(1.0 / 1394852659200)};
  const V quotient = hn::Div(hn::Sub(exp(x), phi(x)), x);
  return hn::IfThenElse(hn::Lt(hn::Abs(x), constant<V>(T(0.5))), polynomial(x, kSeries), quotient);
}

// Adds a·b, a strip of channels from `column` on, into 16 lanes: lane j takes channels j, j+16, … in increasing order.
template <class T>
HWY_INLINE void add_lanes(const Vec<T>* a, const Vec<T>* b, T* lanes, std::int64_t column) {
  constexpr int kSums = kVectors < 16 / kWidth<T> ? kVectors : 16 / kWidth<T>;
  T* at = lanes + column % 16;
  Vec<T> sum[kSums];
#pragma GCC unroll 2
  for (int i = 0; i < kSums; ++i) sum[i] = load(at + i * kWidth<T>);
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) sum[v % kSums] = fma(a[v], b[v], sum[v % kSums]);
#pragma GCC unroll 2
  for (int i = 0; i < kSums; ++i) store<T>(sum[i], at + i * kWidth<T>);
}
// Adds a·b to sums per channel.
template <class T>
HWY_INLINE void add_channels(const Vec<T>* a, const Vec<T>* b, T* sums) {
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) store<T>(fma(a[v], b[v], load(sums + v * kWidth<T>)), sums + v * kWidth<T>);
}

// Keeps the states, sums the gradients of C and z.
template <class T>
struct ReplaySink {
  static constexpr bool kKeepsStates = true;
  const ScanBlock<T>& in;
  const SpanBuffers<T>& span;
  ScanRows<T> z;
  T* C;
  const NextRows<T>& next;

  struct Token {
    Vec<T> grad_q[kVectors];
    T* C;
    std::int64_t column;
    bool constant;

    HWY_INLINE void states(std::int64_t n, const Vec<T>* h) const {
      if (constant) {
        add_channels<T>(grad_q, h, C + n * kBlock + column);
      } else {
        add_lanes<T>(grad_q, h, C + n * 16, column);
      }
    }
  };
  HWY_INLINE Token begin(std::int64_t t, std::int64_t column) const {
    Token token;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) token.grad_q[v] = load(span.grad_q + t * kBlock + column + v * kWidth<T>);
    token.constant = in.C_lanes != nullptr;
    token.C = token.constant ? C : C + t * in.N * 16;
    token.column = column;
    return token;
  }
  HWY_INLINE void output(std::int64_t t, std::int64_t column, Vec<T> sum) const {
    if (!z.data) return;
    if (in.skip) sum = fma(load(in.skip + column), load(span.tile.u + t * kBlock + column), sum);
    store_channels<T>(hn::Mul(sum, load(span.gate_slope + t * kBlock + column)), z.row(t), column, in.width);
  }
};

// Fills the tile, grad_q = grad_y·silu(z) and gate_slope = grad_y·silu'(z). True as for prepare_tile.
template <class T>
bool prepare_span(const ScanBackward<T>& work, const SpanBuffers<T>& span) {
  const ScanBlock<T>& in = work.in;
  if (!in.z) gather(work.grad_y, work.grad_y_stride, in.width, work.tokens, span.grad_q);
  return prepare_tile(in, work.tokens, span.tile, [&](std::int64_t t, std::int64_t column, Vec<T> z, Vec<T> e) {
    const Vec<T> grad = load_part(work.grad_y + t * work.grad_y_stride + column, in.width - column);
    z = at_most(at_least(z, -kFar<T>), std::numeric_limits<T>::max());
    const Vec<T> large = hn::Div(set<T>(1), hn::Add(set<T>(1), e)), small = hn::Mul(e, large);
    const auto below = hn::Lt(z, zero<T>());
    const Vec<T> s = hn::IfThenElse(below, small, large), rest = hn::IfThenElse(below, large, small);
    store<T>(hn::Mul(grad, fma(hn::Mul(s, rest), z, s)), span.gate_slope + t * kBlock + column);
    store<T>(hn::Mul(grad, hn::Mul(z, s)), span.grad_q + t * kBlock + column);
  });
}

// One token of a strip, on the way back.
template <class T>
struct AdjointToken {
  std::int64_t column;
  const T *B, *C, *states;  // the states before the token
  T* B_lanes;
  Vec<T> dt[kVectors], dx[kVectors], u[kVectors], grad_q[kVectors], through_B[kVectors], through_step[kVectors];
};

// The adjoint of state n of a token of a strip, as the reference has it, with le = lam·a·h before the token, as
// (a·lam)·h. a: kVectors vectors of decays.
template <bool kPlain, class T>
HWY_INLINE void retreat(const ScanBackward<T>& work, const SpanBuffers<T>& span, std::int64_t n, const Vec<T>* a,
                        AdjointToken<T>& token) {
  const ScanBlock<T>& in = work.in;
  const std::int64_t first = n * kBlock + token.column;
  T* lam_first = work.lam + first;
  // All loads before the stores: the compiler must take a store for one into B or C.
  const Vec<T> each_b = set(kPlain || !in.B_lanes ? token.B[n] : T(0)),
               each_k = set(kPlain || !in.C_lanes ? token.C[n] : T(0));
  Vec<T> b[kVectors], lam[kVectors], passed[kVectors], to_rate[kVectors], weight[kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const std::int64_t at = first + v * kWidth<T>;
    b[v] = kPlain || !in.B_lanes ? each_b : load(in.B_lanes + at);
    const Vec<T> k = kPlain || !in.C_lanes ? each_k : load(in.C_lanes + at);
    lam[v] = fma(token.grad_q[v], k, load(lam_first + v * kWidth<T>));
    passed[v] = hn::Mul(a[v], lam[v]);
    to_rate[v] = hn::Mul(passed[v], load(token.states + at));
    token.through_step[v] = fma(to_rate[v], load(in.A_slope + at), token.through_step[v]);
    weight[v] = token.dx[v];
    Vec<T> lam_b = lam[v];
    if constexpr (!kPlain) {
      if (in.zero_order) {
        // d(dt·φ(dt·A))/d dt = exp(dt·A) = a, and d/dA = dt²·φ'(dt·A).
        const Vec<T> x = exponent<T>(token.dt[v], load(in.A + at)), factor = phi(x);
        token.through_step[v] = fma(hn::Mul(passed[v], b[v]), token.u[v], token.through_step[v]);
        to_rate[v] = fma(hn::Mul(token.dx[v], phi_derivative(x)), hn::Mul(lam[v], b[v]), to_rate[v]);
        weight[v] = hn::Mul(token.dx[v], factor);
        lam_b = hn::Mul(lam[v], factor);
      }
    }
    token.through_B[v] = fma(lam_b, b[v], token.through_B[v]);
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) store<T>(passed[v], lam_first + v * kWidth<T>);
  add_channels<T>(to_rate, token.dt, span.A + first);
  if (kPlain || !in.B_lanes) {
    add_lanes<T>(lam, weight, token.B_lanes + n * 16, token.column);
  } else {
    add_channels<T>(lam, weight, work.B + first);
  }
}

// Decays, made again rather than kept: a second stream of stores beside that of the states would be more than the
// second-level cache takes. Then the adjoint of kCount states.
template <bool kPlain, int kCount, class T>
HWY_INLINE void retreat_together(const ScanBackward<T>& work, const SpanBuffers<T>& span, std::int64_t n,
                                 AdjointToken<T>& token) {
  Vec<T> a[kCount * kVectors];
  strip_decays<kPlain>(work.in, n * kBlock + token.column, token.dt, a);
#pragma GCC unroll 4
  for (int j = 0; j < kCount; ++j) retreat<kPlain>(work, span, n + j, a + j * kVectors, token);
}

// The tokens backwards.
template <class T, bool kPlain>
HWY_NOINLINE void run_adjoint(const ScanBackward<T>& work, const SpanBuffers<T>& span) {
  constexpr int kTogether = kPlain ? kStates : 1;
  const ScanBlock<T>& in = work.in;
  for (std::int64_t c = 0; c < in.width; c += kStrip<T>) {
    for (std::int64_t t = work.tokens - 1; t >= 0; --t) {
      AdjointToken<T> token;
      token.column = c;
      token.B = in.B + t * in.B_stride;
      token.C = in.C + t * in.C_stride;
      token.states = span.states + t * in.N * kBlock;
      token.B_lanes = work.B + t * in.N * 16;
      if (c == 0) fetch(work.next_out, t);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const std::int64_t at = t * kBlock + c + v * kWidth<T>;
        token.dt[v] = load(span.tile.steps + at);
        token.dx[v] = load(span.tile.inputs + at);
        token.grad_q[v] = load(span.grad_q + at);
        token.through_B[v] = token.through_step[v] = zero<T>();
        token.u[v] = load(span.tile.u + at);
      }
      std::int64_t n = 0;
      for (; n + kTogether <= in.N; n += kTogether) retreat_together<kPlain, kTogether>(work, span, n, token);
      for (; n < in.N; ++n) retreat_together<kPlain, 1>(work, span, n, token);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const std::int64_t at = t * kBlock + c + v * kWidth<T>;
        store<T>(token.through_B[v], span.through_B + at);
        store<T>(token.through_step[v], span.through_step + at);
      }
    }
  }
}

// Gradients of u and dt from the sums over n, and the sums over tokens of dt_bias and D.
template <class T>
HWY_NOINLINE void finish_gradients(const ScanBackward<T>& work, const SpanBuffers<T>& span) {
  const ScanBlock<T>& in = work.in;
  for (std::int64_t c = 0; c < in.width; c += kWidth<T>) {
    Vec<T> bias = zero<T>(), skip = zero<T>();
    for (std::int64_t t = 0; t < work.tokens; ++t) {
      const std::int64_t at = t * kBlock + c;
      const Vec<T> dt = load(span.tile.steps + at), through_B = load(span.through_B + at);
      const Vec<T> u = load(span.tile.u + at), grad_q = load(span.grad_q + at);
      Vec<T> grad_u = hn::Mul(dt, through_B);
      if (in.skip) grad_u = fma(grad_q, load(in.skip + c), grad_u);
      Vec<T> grad_dt = load(span.through_step + at);
      if (!in.zero_order) grad_dt = fma(through_B, u, grad_dt);
      if (in.softplus) grad_dt = hn::Mul(grad_dt, load(span.tile.slopes + at));
      if (work.u.data) store_channels<T>(grad_u, work.u.row(t), c, in.width);
      if (work.dt.data) store_channels<T>(grad_dt, work.dt.row(t), c, in.width);
      bias = hn::Add(bias, grad_dt);
      skip = fma(grad_q, u, skip);
    }
    store<T>(hn::Add(load(work.dt_bias + c), bias), work.dt_bias + c);
    store<T>(hn::Add(load(work.skip + c), skip), work.skip + c);
  }
}

template <class T>
void scan_backward_t(const ScanBackward<T>& work, Arena& scratch) {
  ArenaScope scope(scratch);
  const ScanBlock<T>& in = work.in;
  const std::int64_t rows = padded(work.tokens * kBlock), state = in.N * kBlock;
  SpanBuffers<T> span{};
  for (T** array : {&span.tile.u, &span.tile.steps, &span.tile.inputs, &span.grad_q, &span.gate_slope, &span.through_B,
                    &span.through_step}) {
    *array = scratch.allocate<T>(rows);
  }
  if (in.z) span.tile.gates = scratch.allocate<T>(rows);
  if (in.softplus) span.tile.slopes = scratch.allocate<T>(rows);
  span.states = scratch.allocate<T>((work.tokens + 1) * state);
  span.A = scratch.allocate<T>(state);
  std::copy_n(work.h, state, span.states);
  std::fill_n(span.A, state, T(0));
  const bool plain = prepare_span(work, span);
  const ReplaySink<T> sink{in, span, work.z, work.C, work.next};
  if (plain) {
    run_tile<T, true>(in, work.tokens, span.tile, span.states, sink);
    run_adjoint<T, true>(work, span);
  } else {
    run_tile<T, false>(in, work.tokens, span.tile, span.states, sink);
    run_adjoint<T, false>(work, span);
  }
  finish_gradients(work, span);
  for (std::int64_t i = 0; i < state; i += kWidth<T>) store<T>(hn::Add(load(work.A + i), load(span.A + i)), work.A + i);
}
void scan_backward_f32(const ScanBackward<float>& work, Arena& scratch) { scan_backward_t(work, scratch); }
void scan_backward_f64(const ScanBackward<double>& work, Arena& scratch) { scan_backward_t(work, scratch); }

template <class T>
void fold_rows_t(const T* lanes, std::int64_t rows, T* sums) {
  for (std::int64_t i = 0; i < rows; ++i, lanes += 16) {
    T s[8];
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) s[j] = lanes[j] + lanes[j + 8];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) s[j] += s[j + 4];
    sums[i] = (s[0] + s[2]) + (s[1] + s[3]);
  }
}
void fold_rows_f32(const float* lanes, std::int64_t rows, float* sums) { fold_rows_t(lanes, rows, sums); }
void fold_rows_f64(const double* lanes, std::int64_t rows, double* sums) { fold_rows_t(lanes, rows, sums); }

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(scan_backward_f32);
HWY_EXPORT(scan_backward_f64);
HWY_EXPORT(fold_rows_f32);
HWY_EXPORT(fold_rows_f64);

void scan_backward(const ScanBackward<float>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(scan_backward_f32)(work, scratch);
}
void scan_backward(const ScanBackward<double>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(scan_backward_f64)(work, scratch);
}
void fold_rows(const float* lanes, std::int64_t rows, float* sums) {
  HWY_DYNAMIC_DISPATCH(fold_rows_f32)(lanes, rows, sums);
}
void fold_rows(const double* lanes, std::int64_t rows, double* sums) {
  HWY_DYNAMIC_DISPATCH(fold_rows_f64)(lanes, rows, sums);
}

}  // namespace stepwell::ops
#endif
