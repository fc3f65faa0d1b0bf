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

// A block of `width` columns (16 or 32) of a span. Rows of tokens are `width` long. States and their gradients lie
// transposed, [width, Kp]: then products that sum over columns and those that sum over channels all find contiguous
// rows, and only 16×16 blocks of tokens and columns are ever transposed.
template <class T>
struct BlockBuffers {
  std::int64_t width, Kp;
  T *v, *w;      // [kSpan, width]
  T* residuals;  // [kSpan, width] R
  T* gradients;  // [2·16, width] of a chunk: dO, then X
  T* states;     // [kSpanChunks, width, Kp] before each chunk
  T* by_column;  // [width, 16 tokens]
  T* rows;       // [2·16, width]
  T* w_lanes;    // [kSpan, 16] partial sums of a head's one write gate

  T* state(std::int64_t c) const { return states + c * width * Kp; }
};

// Units of a packed state [units, K, 16] to [16·units, Kp], zeros beyond K.
template <class T>
void transpose_units(const T* units, std::int64_t count, std::int64_t K, std::int64_t Kp, T* out) {
  HWY_ALIGN T block[16 * 16];
  for (std::int64_t unit = 0; unit < count; ++unit, units += K * 16, out += 16 * Kp) {
    std::int64_t d = 0;
    for (; d + 16 <= K; d += 16) transpose_block(units + d * 16, 16, out + d, Kp);
    if (d == K) continue;
    std::fill_n(std::copy_n(units + d * 16, (K - d) * 16, block), (16 - (K - d)) * 16, T(0));
    transpose_block(block, 16, out + d, Kp);
  }
}

// [width, 16 tokens] ↔ [tokens, width], 16 tokens there too.
template <class T>
HWY_INLINE void columns_to_tokens(const T* by_column, std::int64_t width, T* by_token) {
  for (std::int64_t c = 0; c < width; c += 16) transpose_block(by_column + c * 16, 16, by_token + c, width);
}
template <class T>
HWY_INLINE void tokens_to_columns(const T* by_token, std::int64_t width, T* by_column) {
  for (std::int64_t c = 0; c < width; c += 16) transpose_block(by_token + c, width, by_column + c * 16, 16);
}

// next = exp(G_n)⊙S + RᵀK̃, transposed. `buffer` [n, width] is scratch.
template <class T>
HWY_INLINE void advance_block(const ChunkFactors<T>& f, std::int64_t width, const T* S, const T* R, T* buffer,
                              T* next) {
  R = scaled_rows(R, f.write_scale, f.tokens, width, buffer);
  tile_product<T>({R, 1, width, f.write, f.Kp, f.tokens, S, f.Kp, next, f.Kp, nullptr, f.decay}, width, f.Kp);
}

// Forwards through the chunks: residuals, and the states before them.
template <class T>
void replay_block(const SpanBackward<T>& work, const BlockBuffers<T>& b) {
  const std::int64_t chunks = work.layout.chunks(work.tokens), width = b.width;
  if (work.head.w) {
    multiply(b.w, b.v, work.tokens * width, b.residuals);
  } else {
    std::copy_n(b.v, work.tokens * width, b.residuals);
  }
  for (std::int64_t c = 0; c < chunks; ++c) {
    const ChunkFactors<T> f = work.chunk(c);
    T* R = b.residuals + c * kBackwardChunk * width;
    if (f.erases) {
      tile_product<T>({b.state(c), f.Kp, 1, f.erase_panel, 16, f.Kp, nullptr, 0, b.by_column, 16}, width, 16);
      columns_to_tokens(b.by_column, width, b.rows);
      add_rows(b.rows, f.read_scale ? f.read_scale + f.tokens : nullptr, f.tokens, width, R);
      solve_residuals(f, width, R);
    }
    if (c + 1 < chunks) advance_block(f, width, b.state(c), R, b.rows, b.state(c + 1));
  }
}

// The gradient of the residuals' right side: (I + T)ᵀ X = Aᵀ dO + K̃ Λ, X holding K̃ Λ on entry.
template <class T>
HWY_NOINLINE void solve_gradients(const ChunkFactors<T>& f, std::int64_t width, const T* dO, T* X) {
  const std::int64_t n = f.tokens, row = f.score_row;
  for (std::int64_t column = 0; column < width; column += 16) {
    for (std::int64_t j = n - 1; j >= 0; --j) {
      Vec<T> sum[kUnitVectors<T>];
#pragma GCC unroll 16
      for (int v = 0; v < kUnitVectors<T>; ++v) sum[v] = load(X + j * width + column + v * kWidth<T>);
      for (std::int64_t i = j; i < n; ++i) {
        const Vec<T> a = set(f.scores[i * row + j]);
        const T* from = dO + i * width + column;
#pragma GCC unroll 16
        for (int v = 0; v < kUnitVectors<T>; ++v) sum[v] = fma(a, load(from + v * kWidth<T>), sum[v]);
      }
      for (std::int64_t i = n - 1; i > j && f.erases; --i) {
        const Vec<T> t = set(f.erase_scores[i * row + j]);
        const T* from = X + i * width + column;
#pragma GCC unroll 16
        for (int v = 0; v < kUnitVectors<T>; ++v) sum[v] = fma(t, load(from + v * kWidth<T>), sum[v]);
      }
#pragma GCC unroll 16
      for (int v = 0; v < kUnitVectors<T>; ++v) store<T>(sum[v], X + j * width + column + v * kWidth<T>);
    }
  }
}

// overlap[d] += Σ S⊙Λ over the block's columns.
template <class T>
void add_overlap(const T* S, const T* lam, std::int64_t width, std::int64_t Kp, const T* start, T* overlap) {
  for (std::int64_t d = 0; d < Kp; d += 16) {
    Vec<T> sum[kUnitVectors<T>];
#pragma GCC unroll 16
    for (int v = 0; v < kUnitVectors<T>; ++v) sum[v] = start ? load(start + d + v * kWidth<T>) : zero<T>();
    for (std::int64_t column = 0; column < width; ++column) {
#pragma GCC unroll 16
      for (int v = 0; v < kUnitVectors<T>; ++v) {
        const std::int64_t at = column * Kp + d + v * kWidth<T>;
        sum[v] = fma(load(S + at), load(lam + at), sum[v]);
      }
    }
#pragma GCC unroll 16
    for (int v = 0; v < kUnitVectors<T>; ++v) store<T>(sum[v], overlap + d + v * kWidth<T>);
  }
}

// Gradients of v and w of a chunk from X.
template <class T>
void value_gradients(const SpanBackward<T>& work, std::int64_t first, std::int64_t n, std::int64_t column, const T* X,
                     const BlockBuffers<T>& b) {
  const std::int64_t V = work.head.V, at = first * b.width, size = n * b.width;
  HWY_ALIGN T product[kBackwardChunk * 32];
  if (work.grad_v) {
    const T* gradient = X;
    if (work.head.w) {
      multiply(b.w + at, X, size, product);
      gradient = product;
    }
    store_columns<T>(gradient, {work.grad_v.row(first), work.grad_v.stride}, n, column, b.width, V);
  }
  if (!work.grad_w) return;
  if (work.head.w.channels) {
    multiply(b.v + at, X, size, product);
    store_columns<T>(product, {work.grad_w.row(first), work.grad_w.stride}, n, column, b.width, V);
    return;
  }
  for (std::int64_t t = 0; t < n; ++t) {
    T* lanes = b.w_lanes + (first + t) * 16;
    for (std::int64_t i = 0; i < b.width; i += kWidth<T>) {
      T* lane = lanes + i % 16;
      store<T>(fma(load(b.v + at + t * b.width + i), load(X + t * b.width + i), load(lane)), lane);
    }
  }
}

// Backwards through the chunks of a block: Λ, and what the block adds to the sums (to nothing, if it is the first).
template <class T>
void unwind_block(const SpanBackward<T>& work, std::int64_t column, T* lam, const BlockBuffers<T>& b) {
  const std::int64_t Kp = b.Kp, width = b.width;
  const SumsLayout sums_layout{Kp, kBackwardChunk, work.layout.erases};
  for (std::int64_t c = work.layout.chunks(work.tokens) - 1; c >= 0; --c) {
    const ChunkFactors<T> f = work.chunk(c);
    const ColumnSums<T> sums = sums_layout.at(work.sums, c, f.tokens);
    const auto sum_start = [&](const T* so_far) { return column == 0 ? nullptr : so_far; };
    const std::int64_t first = c * kBackwardChunk, n = f.tokens, rows = f.erases ? 2 * n : n;
    const T *S = b.state(c), *R = b.residuals + first * width;
    T *dO = b.gradients, *X = dO + n * width;
    // 16 tokens are written, of which n remain; dO comes after, over none of them.
    tile_product<T>({lam, Kp, 1, f.write_panel, 16, Kp, nullptr, 0, b.by_column, 16}, width, 16);
    columns_to_tokens(b.by_column, width, X);
    if (work.grad_o) {
      load_columns<T>({work.grad_o.row(first), work.grad_o.stride}, n, column, width, work.head.V, dO);
    } else {
      std::fill_n(dO, n * width, T(0));
    }
    if (f.write_scale) scale_rows(X, f.write_scale, n, width, X);
    solve_gradients(f, width, dO, X);
    value_gradients(work, first, n, column, X, b);
    tile_product<T>({dO, width, 1, S, Kp, width, sum_start(sums.read), Kp, sums.read, Kp}, rows, Kp);
    tile_product<T>({R, width, 1, lam, Kp, width, sum_start(sums.write), Kp, sums.write, Kp}, n, Kp);
    add_overlap(S, lam, width, Kp, sum_start(sums.overlap), sums.overlap);
    tokens_to_columns(R, width, b.by_column);
    tile_product<T>({dO, width, 1, b.by_column, 16, width, sum_start(sums.scores), 16, sums.scores, 16}, rows, 16);
    const T* read = scaled_rows(dO, f.read_scale, rows, width, b.rows);
    tile_product<T>({read, 1, width, f.read, Kp, rows, lam, Kp, lam, Kp, nullptr, f.decay}, width, Kp);
  }
}

template <class T>
void span_backward_t(const SpanBackward<T>& work, Arena& scratch) {
  ArenaScope scope(scratch);
  const DeltaHead<T>& head = work.head;
  const std::int64_t K = head.K, Kp = work.layout.Kp, widest = std::min<std::int64_t>(32, work.units * 16);
  BlockBuffers<T> b;
  b.Kp = Kp;
  b.v = scratch.allocate<T>(kSpan * widest);
  b.w = scratch.allocate<T>(kSpan * widest);
  b.residuals = scratch.allocate<T>(kSpan * widest);
  b.gradients = scratch.allocate<T>(2 * kBackwardChunk * widest);
  b.states = scratch.allocate<T>(kSpanChunks * widest * Kp);
  b.by_column = scratch.allocate<T>(widest * 16);
  b.rows = scratch.allocate<T>(2 * kBackwardChunk * widest);
  b.w_lanes = scratch.allocate<T>(kSpan * 16);
  std::fill_n(b.w_lanes, kSpan * 16, T(0));
  // What is transposed beyond the last token.
  std::fill_n(b.residuals + work.tokens * widest, (kSpan - work.tokens) * widest, T(0));
  for (std::int64_t unit = 0; unit < work.units; unit += 2) {
    const std::int64_t column = unit * 16, count = std::min<std::int64_t>(2, work.units - unit);
    b.width = count * 16;
    fetch_columns<const T>(work.grad_o, 0, work.tokens, column, b.width);
    load_columns<T>(head.v, work.tokens, column, b.width, head.V, b.v);
    if (head.w) load_write_gates(head, work.tokens, column, b.width, b.w);
    transpose_units(work.state + unit * K * 16, count, K, Kp, b.states);
    fetch_columns<T>(work.grad_v, 0, work.tokens, column, b.width);
    if (head.w.channels) fetch_columns<T>(work.grad_w, 0, work.tokens, column, b.width);
    replay_block(work, b);
    fetch_columns<const T>(head.v, 0, work.tokens, column + b.width, b.width);
    if (head.w.channels) fetch_columns<const T>(head.w, 0, work.tokens, column + b.width, b.width);
    unwind_block(work, column, work.lam + column * Kp, b);
  }
  if (!work.grad_w || head.w.channels) return;
  for (std::int64_t t = 0; t < work.tokens; ++t) *work.grad_w.row(t) = sum16(b.w_lanes + t * 16, 16);
}
void span_backward_f32(const SpanBackward<float>& work, Arena& scratch) { span_backward_t(work, scratch); }
void span_backward_f64(const SpanBackward<double>& work, Arena& scratch) { span_backward_t(work, scratch); }

void transpose_state_f32(const float* packed, std::int64_t units, std::int64_t K, float* transposed) {
  transpose_units(packed, units, K, round_up_16(K), transposed);
}
void transpose_state_f64(const double* packed, std::int64_t units, std::int64_t K, double* transposed) {
  transpose_units(packed, units, K, round_up_16(K), transposed);
}

template <class T>
void restore_state_t(const T* transposed, std::int64_t units, std::int64_t K, T* packed) {
  const std::int64_t Kp = round_up_16(K);
  HWY_ALIGN T block[16 * 16];
  for (std::int64_t unit = 0; unit < units; ++unit, transposed += 16 * Kp, packed += K * 16) {
    for (std::int64_t d = 0; d < K; d += 16) {
      transpose_block(transposed + d, Kp, block, 16);
      std::copy_n(block, std::min<std::int64_t>(16, K - d) * 16, packed + d * 16);
    }
  }
}
void restore_state_f32(const float* transposed, std::int64_t units, std::int64_t K, float* packed) {
  restore_state_t(transposed, units, K, packed);
}
void restore_state_f64(const double* transposed, std::int64_t units, std::int64_t K, double* packed) {
  restore_state_t(transposed, units, K, packed);
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(span_backward_f32);
HWY_EXPORT(span_backward_f64);
HWY_EXPORT(transpose_state_f32);
HWY_EXPORT(transpose_state_f64);
HWY_EXPORT(restore_state_f32);
HWY_EXPORT(restore_state_f64);

void span_backward(const SpanBackward<float>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(span_backward_f32)(work, scratch);
}
void span_backward(const SpanBackward<double>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(span_backward_f64)(work, scratch);
}
void transpose_state(const float* packed, std::int64_t units, std::int64_t K, float* transposed) {
  HWY_DYNAMIC_DISPATCH(transpose_state_f32)(packed, units, K, transposed);
}
void transpose_state(const double* packed, std::int64_t units, std::int64_t K, double* transposed) {
  HWY_DYNAMIC_DISPATCH(transpose_state_f64)(packed, units, K, transposed);
}
void restore_state(const float* transposed, std::int64_t units, std::int64_t K, float* packed) {
  HWY_DYNAMIC_DISPATCH(restore_state_f32)(transposed, units, K, packed);
}
void restore_state(const double* transposed, std::int64_t units, std::int64_t K, double* packed) {
  HWY_DYNAMIC_DISPATCH(restore_state_f64)(transposed, units, K, packed);
}

}  // namespace stepwell::ops
#endif
