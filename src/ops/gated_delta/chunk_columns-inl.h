// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// Chunks over one unit of 16 value columns: loading, the triangular solve, the state. Used forwards and backwards.
#if defined(STEPWELL_OPS_GATED_DELTA_CHUNK_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_OPS_GATED_DELTA_CHUNK_COLUMNS_INL_H_
#undef STEPWELL_OPS_GATED_DELTA_CHUNK_COLUMNS_INL_H_
#else
#define STEPWELL_OPS_GATED_DELTA_CHUNK_COLUMNS_INL_H_
#endif

#include "ops/column_block/panel_product-inl.h"
#include "ops/gated_delta/chunk_simd.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

// Vectors of a unit.
template <class T>
inline constexpr int kUnitVectors = 16 / kWidth<T>;

// Column `column` and the 15 after it of rows 0 … n−1, zeros beyond `width`, to [n, 16].
template <class T>
HWY_INLINE void load_columns(HeadRows<const T> rows, std::int64_t n, std::int64_t column, std::int64_t width, T* out) {
  for (std::int64_t t = 0; t < n; ++t, out += 16) {
    const T* row = rows.row(t) + column;
#pragma GCC unroll 16
    for (int v = 0; v < kUnitVectors<T>; ++v) {
      const std::int64_t at = v * kWidth<T>;
      store<T>(load_part(row + at, width - column - at), out + at);
    }
  }
}
template <class T>
HWY_INLINE void store_columns(const T* in, HeadRows<T> rows, std::int64_t n, std::int64_t column, std::int64_t width) {
  for (std::int64_t t = 0; t < n; ++t, in += 16) {
    T* row = rows.row(t) + column;
#pragma GCC unroll 16
    for (int v = 0; v < kUnitVectors<T>; ++v) {
      const std::int64_t at = v * kWidth<T>;
      store_part<T>(load(in + at), row + at, width - column - at);
    }
  }
}

// The write gates of a unit to [n, 16]: 1 where there are none, 0 beyond V where there is one per column.
template <class T>
HWY_INLINE void load_write_gates(const DeltaHead<T>& head, std::int64_t n, std::int64_t column, T* out) {
  if (head.w.channels) return load_columns<T>(head.w, n, column, head.V, out);
  for (std::int64_t t = 0; t < n; ++t) std::fill_n(out + t * 16, 16, head.w ? *head.w.row(t) : T(1));
}

// x ⊙ y to out, n numbers, a multiple of 16.
template <class T>
HWY_INLINE void multiply(const T* x, const T* y, std::int64_t n, T* out) {
  for (std::int64_t i = 0; i < n; i += kWidth<T>) store<T>(hn::Mul(load(x + i), load(y + i)), out + i);
}

// out_i += Σ_{first ≤ j < i} m_ij x_j for rows i of a block, or j ≤ i; out may be x (a triangular solve: rows are
// finished in order). m rows of m_row; x and out [·, 16].
template <class T, bool kDiagonal>
HWY_NOINLINE void lower_product(const T* m, std::int64_t m_row, std::int64_t n, const T* x, T* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    Vec<T> sum[kUnitVectors<T>];
#pragma GCC unroll 16
    for (int v = 0; v < kUnitVectors<T>; ++v) sum[v] = load(out + i * 16 + v * kWidth<T>);
    const std::int64_t end = kDiagonal ? i + 1 : i;
    for (std::int64_t j = 0; j < end; ++j) {
      const Vec<T> factor = set(m[i * m_row + j]);
#pragma GCC unroll 16
      for (int v = 0; v < kUnitVectors<T>; ++v) sum[v] = fma(factor, load(x + j * 16 + v * kWidth<T>), sum[v]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < kUnitVectors<T>; ++v) store<T>(sum[v], out + i * 16 + v * kWidth<T>);
  }
}

// Solves (I + T) R = R in place, R [n, 16], by blocks of 16 rows.
template <class T>
HWY_INLINE void solve_residuals(const ChunkFactors<T>& f, T* R) {
  for (std::int64_t first = 0; first < f.tokens; first += 16) {
    const std::int64_t n = std::min<std::int64_t>(16, f.tokens - first);
    const T* m = f.erase_scores + first * f.score_row;
    T* rows = R + first * 16;
    if (first > 0) panel_product<T>({m, f.score_row, 1, R, first, rows, 16, rows, 16}, n);
    lower_product<T, false>(m + first, f.score_row, n, rows, rows);
  }
}

// O += A R.
template <class T>
HWY_INLINE void read_residuals(const ChunkFactors<T>& f, const T* R, T* O) {
  for (std::int64_t first = 0; first < f.tokens; first += 16) {
    const std::int64_t n = std::min<std::int64_t>(16, f.tokens - first);
    const T* m = f.scores + first * f.score_row;
    T* rows = O + first * 16;
    if (first > 0) panel_product<T>({m, f.score_row, 1, R, first, rows, 16, rows, 16}, n);
    lower_product<T, true>(m + first, f.score_row, n, R + first * 16, rows);
  }
}

// next = exp(G_n)⊙S + K̃ᵀR of one unit [K, 16].
template <class T>
HWY_INLINE void advance_state(const ChunkFactors<T>& f, std::int64_t K, const T* S, const T* R, T* next) {
  panel_product<T>({f.write, 1, f.Kp, R, f.tokens, S, 16, next, 16, f.decay}, K);
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
