// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gated_delta/backward_columns_simd.cc"
#include "hwy/foreach_target.h"

#include "ops/gated_delta/chunk_columns-inl.h"
#include "simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

inline constexpr std::int64_t kSpanChunks = kSpan / kBackwardChunk;

// One unit of 16 columns of a span. Rows of tokens are 16 long.
template <class T>
struct UnitBuffers {
  T *v, *w;            // [kSpan, 16]
  T* residuals;        // [kSpan, 16] R
  T* gradients;        // [2·16, 16] of a chunk: dO, then X
  T* states;           // [kSpanChunks, K, 16] before each chunk but the first
  T *state_t, *lam_t;  // [Kp/16, 16 columns, 16 channels]
  T* residuals_t;      // [16 columns, 16 tokens]
  T* w_lanes;          // [kSpan, 16] partial sums of a head's one write gate

  UnitBuffers(std::int64_t K, std::int64_t Kp, Arena& scratch) {
    v = scratch.allocate<T>(kSpan * 16);
    w = scratch.allocate<T>(kSpan * 16);
    residuals = scratch.allocate<T>(kSpan * 16);
    gradients = scratch.allocate<T>(2 * kBackwardChunk * 16);
    states = scratch.allocate<T>((kSpanChunks - 1) * K * 16);
    state_t = scratch.allocate<T>(Kp * 16);
    lam_t = scratch.allocate<T>(Kp * 16);
    residuals_t = scratch.allocate<T>(16 * 16);
    w_lanes = scratch.allocate<T>(kSpan * 16);
    std::fill_n(w_lanes, kSpan * 16, T(0));
  }
  const T* state(std::int64_t c, const T* before, std::int64_t K) const {
    return c == 0 ? before : states + (c - 1) * K * 16;
  }
};

// [rows, 16] to [rows/16 rounded up, 16, 16] by blocks, zeros beyond the rows.
template <class T>
void transpose_rows(const T* from, std::int64_t rows, T* to) {
  std::int64_t row = 0;
  for (; row + 16 <= rows; row += 16) transpose_block(from + row * 16, 16, to + row * 16, 16);
  if (row == rows) return;
  HWY_ALIGN T block[16 * 16];
  std::fill_n(std::copy_n(from + row * 16, (rows - row) * 16, block), (16 - (rows - row)) * 16, T(0));
  transpose_block(block, 16, to + row * 16, 16);
}

// Forwards through the chunks: residuals, and the states before them.
template <class T>
void replay_unit(const SpanBackward<T>& work, const T* before, const UnitBuffers<T>& b) {
  const std::int64_t K = work.head.K, chunks = work.layout.chunks(work.tokens);
  if (work.head.w) {
    multiply(b.w, b.v, work.tokens * 16, b.residuals);
  } else {
    std::copy_n(b.v, work.tokens * 16, b.residuals);
  }
  for (std::int64_t c = 0; c < chunks; ++c) {
    const ChunkFactors<T> f = work.layout.at(work.factors, c, work.tokens);
    T* R = b.residuals + c * kBackwardChunk * 16;
    const T* S = b.state(c, before, K);
    if (f.erases) {
      panel_product<T>({f.read + f.tokens * f.Kp, f.Kp, 1, S, K, R, 16, R, 16}, f.tokens);
      solve_residuals(f, R);
    }
    if (c + 1 < chunks) advance_state(f, K, S, R, b.states + c * K * 16);
  }
}

// The gradient of the residuals' right side: (I + T)ᵀ X = Aᵀ dO + K̃ Λ, X holding K̃ Λ on entry.
template <class T>
HWY_NOINLINE void solve_gradients(const ChunkFactors<T>& f, const T* dO, T* X) {
  const std::int64_t n = f.tokens, row = f.score_row;
  for (std::int64_t j = n - 1; j >= 0; --j) {
    Vec<T> sum[kUnitVectors<T>];
#pragma GCC unroll 16
    for (int v = 0; v < kUnitVectors<T>; ++v) sum[v] = load(X + j * 16 + v * kWidth<T>);
    for (std::int64_t i = j; i < n; ++i) {
      const Vec<T> a = set(f.scores[i * row + j]);
#pragma GCC unroll 16
      for (int v = 0; v < kUnitVectors<T>; ++v) sum[v] = fma(a, load(dO + i * 16 + v * kWidth<T>), sum[v]);
    }
    for (std::int64_t i = n - 1; i > j && f.erases; --i) {
      const Vec<T> t = set(f.erase_scores[i * row + j]);
#pragma GCC unroll 16
      for (int v = 0; v < kUnitVectors<T>; ++v) sum[v] = fma(t, load(X + i * 16 + v * kWidth<T>), sum[v]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < kUnitVectors<T>; ++v) store<T>(sum[v], X + j * 16 + v * kWidth<T>);
  }
}

// overlap[d] += Σ S⊙Λ over the unit's columns, both transposed.
template <class T>
void add_overlap(const T* state_t, const T* lam_t, std::int64_t Kp, T* overlap) {
  for (std::int64_t d = 0; d < Kp; d += 16) {
#pragma GCC unroll 16
    for (int l = 0; l < 16; l += kWidth<T>) {
      Vec<T> sum = load(overlap + d + l);
      for (std::int64_t column = 0; column < 16; ++column) {
        const std::int64_t at = d * 16 + column * 16 + l;
        sum = fma(load(state_t + at), load(lam_t + at), sum);
      }
      store<T>(sum, overlap + d + l);
    }
  }
}

// out [rows, ·] += x [rows, 16] times the transposed panels of Kp/16 blocks.
template <class T>
void add_products(const T* x, std::int64_t rows, const T* panels, std::int64_t Kp, T* out) {
  for (std::int64_t d = 0; d < Kp; d += 16) {
    panel_product<T>({x, 16, 1, panels + d * 16, 16, out + d, Kp, out + d, Kp}, rows);
  }
}

// Gradients of v and w from X.
template <class T>
void value_gradients(const SpanBackward<T>& work, std::int64_t first, std::int64_t n, std::int64_t column, const T* X,
                     const UnitBuffers<T>& b) {
  const std::int64_t V = work.head.V, at = first * 16;
  HWY_ALIGN T product[kBackwardChunk * 16];
  if (work.grad_v) {
    const T* gradient = X;
    if (work.head.w) {
      multiply(b.w + at, X, n * 16, product);
      gradient = product;
    }
    store_columns<T>(gradient, {work.grad_v.row(first), work.grad_v.stride}, n, column, V);
  }
  if (!work.grad_w) return;
  if (work.head.w.channels) {
    multiply(b.v + at, X, n * 16, product);
    store_columns<T>(product, {work.grad_w.row(first), work.grad_w.stride}, n, column, V);
    return;
  }
  for (std::int64_t i = at; i < at + n * 16; i += kWidth<T>) {
    store<T>(fma(load(b.v + i), load(X + i - at), load(b.w_lanes + i)), b.w_lanes + i);
  }
}

// Backwards through the chunks of a unit: Λ, and what the unit adds to the sums.
template <class T>
void unwind_unit(const SpanBackward<T>& work, std::int64_t column, const T* before, T* lam, const UnitBuffers<T>& b) {
  const DeltaHead<T>& head = work.head;
  const std::int64_t K = head.K, Kp = work.layout.Kp;
  const SumsLayout sums_layout{Kp, kBackwardChunk, work.layout.erases};
  for (std::int64_t c = work.layout.chunks(work.tokens) - 1; c >= 0; --c) {
    const ChunkFactors<T> f = work.layout.at(work.factors, c, work.tokens);
    const ColumnSums<T> sums = sums_layout.at(work.sums, c, f.tokens);
    const std::int64_t first = c * kBackwardChunk, n = f.tokens;
    const T *S = b.state(c, before, K), *R = b.residuals + first * 16;
    T *dO = b.gradients, *X = dO + n * 16;
    if (work.grad_o) {
      load_columns<T>({work.grad_o.row(first), work.grad_o.stride}, n, column, head.V, dO);
    } else {
      std::fill_n(dO, n * 16, T(0));
    }
    panel_product<T>({f.write, Kp, 1, lam, K, nullptr, 0, X, 16}, n);
    solve_gradients(f, dO, X);
    value_gradients(work, first, n, column, X, b);
    transpose_rows(S, K, b.state_t);
    transpose_rows(lam, K, b.lam_t);
    transpose_rows(R, n, b.residuals_t);
    const std::int64_t rows = f.erases ? 2 * n : n;
    add_products(dO, rows, b.state_t, Kp, sums.read);
    add_products(R, n, b.lam_t, Kp, sums.write);
    add_overlap(b.state_t, b.lam_t, Kp, sums.overlap);
    panel_product<T>({dO, 16, 1, b.residuals_t, 16, sums.scores, 16, sums.scores, 16}, rows);
    panel_product<T>({f.read, 1, Kp, dO, rows, lam, 16, lam, 16, f.decay}, K);
  }
}

template <class T>
void span_backward_t(const SpanBackward<T>& work, Arena& scratch) {
  ArenaScope scope(scratch);
  const DeltaHead<T>& head = work.head;
  const std::int64_t K = head.K, size = K * 16;
  const UnitBuffers<T> b(K, work.layout.Kp, scratch);
  const SumsLayout sums{work.layout.Kp, kBackwardChunk, work.layout.erases};
  std::fill_n(work.sums, work.layout.chunks(work.tokens) * sums.chunk_size(), T(0));
  for (std::int64_t unit = 0; unit < work.units; ++unit) {
    const std::int64_t column = unit * 16;
    load_columns<T>(head.v, work.tokens, column, head.V, b.v);
    if (head.w) load_write_gates(head, work.tokens, column, b.w);
    replay_unit(work, work.state + unit * size, b);
    unwind_unit(work, column, work.state + unit * size, work.lam + unit * size, b);
  }
  if (!work.grad_w || head.w.channels) return;
  for (std::int64_t t = 0; t < work.tokens; ++t) *work.grad_w.row(t) = sum16(b.w_lanes + t * 16, 16);
}
void span_backward_f32(const SpanBackward<float>& work, Arena& scratch) { span_backward_t(work, scratch); }
void span_backward_f64(const SpanBackward<double>& work, Arena& scratch) { span_backward_t(work, scratch); }

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(span_backward_f32);
HWY_EXPORT(span_backward_f64);

void span_backward(const SpanBackward<float>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(span_backward_f32)(work, scratch);
}
void span_backward(const SpanBackward<double>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(span_backward_f64)(work, scratch);
}

}  // namespace stepwell::ops
#endif
