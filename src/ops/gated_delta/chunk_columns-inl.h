// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// Chunks over a block of value columns: loading, the triangular solve. Used forwards and backwards.
#if defined(STEPWELL_OPS_GATED_DELTA_CHUNK_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_OPS_GATED_DELTA_CHUNK_COLUMNS_INL_H_
#undef STEPWELL_OPS_GATED_DELTA_CHUNK_COLUMNS_INL_H_
#else
#define STEPWELL_OPS_GATED_DELTA_CHUNK_COLUMNS_INL_H_
#endif

#include "ops/column_block/tile_product-inl.h"
#include "ops/gated_delta/chunk_simd.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

// Vectors of a unit.
template <class T>
inline constexpr int kUnitVectors = 16 / kWidth<T>;

// Columns column … column+width−1 of rows 0 … n−1 of [·, V], zeros beyond V, to [n, width].
template <class T>
HWY_INLINE void load_columns(HeadRows<const T> rows, std::int64_t n, std::int64_t column, std::int64_t width,
                             std::int64_t V, T* out) {
  for (std::int64_t t = 0; t < n; ++t, out += width) {
    const T* row = rows.row(t) + column;
    for (std::int64_t c = 0; c < width; c += kWidth<T>) store<T>(load_part(row + c, V - column - c), out + c);
  }
}
// The way back, rows times a factor each (null: none).
template <class T>
HWY_INLINE void store_columns(const T* in, HeadRows<T> rows, std::int64_t n, std::int64_t column, std::int64_t width,
                              std::int64_t V, HeadRows<const T> factors = {}) {
  for (std::int64_t t = 0; t < n; ++t, in += width) {
    T* row = rows.row(t) + column;
    const Vec<T> factor = factors ? set(*factors.row(t)) : zero<T>();
    for (std::int64_t c = 0; c < width; c += kWidth<T>) {
      const Vec<T> x = load(in + c);
      store_part<T>(factors ? hn::Mul(factor, x) : x, row + c, V - column - c);
    }
  }
}

// Fetches columns that come next into the second-level cache: rows lie a whole row of the tensor apart, which hardware
// prefetchers do not follow. May reach beyond the tensor, which does no harm.
template <class T>
HWY_INLINE void fetch_columns(HeadRows<T> rows, std::int64_t first, std::int64_t n, std::int64_t column,
                              std::int64_t width) {
  if (!rows) return;
  for (std::int64_t t = first; t < first + n; ++t) {
    const T* row = rows.row(t) + column;
    for (std::int64_t c = 0; c < width; c += 64 / sizeof(T)) __builtin_prefetch(row + c, 0, 2);
  }
}

// The write gates of a head that has them to [n, width].
template <class T>
HWY_INLINE void load_write_gates(const DeltaHead<T>& head, std::int64_t n, std::int64_t column, std::int64_t width,
                                 T* out) {
  if (head.w.channels) return load_columns<T>(head.w, n, column, width, head.V, out);
  for (std::int64_t t = 0; t < n; ++t) std::fill_n(out + t * width, width, *head.w.row(t));
}

// x ⊙ y to out: n numbers, a multiple of 16.
template <class T>
HWY_INLINE void multiply(const T* x, const T* y, std::int64_t n, T* out) {
  for (std::int64_t i = 0; i < n; i += kWidth<T>) store<T>(hn::Mul(load(x + i), load(y + i)), out + i);
}

// Rows of [n, width] times a factor each, to out; and added to it, where no factors are ones.
template <class T>
HWY_INLINE void scale_rows(const T* x, const T* factors, std::int64_t n, std::int64_t width, T* out) {
  for (std::int64_t t = 0; t < n; ++t) {
    const Vec<T> factor = set(factors[t]);
    for (std::int64_t i = t * width; i < (t + 1) * width; i += kWidth<T>)
      store<T>(hn::Mul(factor, load(x + i)), out + i);
  }
}
template <class T>
HWY_INLINE void add_rows(const T* x, const T* factors, std::int64_t n, std::int64_t width, T* out) {
  for (std::int64_t t = 0; t < n; ++t) {
    const Vec<T> factor = set(factors ? factors[t] : T(1));
    for (std::int64_t i = t * width; i < (t + 1) * width; i += kWidth<T>) {
      store<T>(fma(factor, load(x + i), load(out + i)), out + i);
    }
  }
}
// x, or its rows scaled in `buffer`.
template <class T>
HWY_INLINE const T* scaled_rows(const T* x, const T* factors, std::int64_t n, std::int64_t width, T* buffer) {
  if (factors == nullptr) return x;
  scale_rows(x, factors, n, width, buffer);
  return buffer;
}

// out_i += Σ_{j < i} m_ij x_j for rows i of a block, or j ≤ i; out may be x (a triangular solve: rows are finished in
// order). m rows of m_row; x and out [n, width].
template <class T, bool kDiagonal>
HWY_NOINLINE void lower_product(const T* m, std::int64_t m_row, std::int64_t n, std::int64_t width, const T* x,
                                T* out) {
  for (std::int64_t column = 0; column < width; column += 16) {
    for (std::int64_t i = 0; i < n; ++i) {
      Vec<T> sum[kUnitVectors<T>];
#pragma GCC unroll 16
      for (int v = 0; v < kUnitVectors<T>; ++v) sum[v] = load(out + i * width + column + v * kWidth<T>);
      const std::int64_t end = kDiagonal ? i + 1 : i;
      for (std::int64_t j = 0; j < end; ++j) {
        const Vec<T> factor = set(m[i * m_row + j]);
        const T* from = x + j * width + column;
#pragma GCC unroll 16
        for (int v = 0; v < kUnitVectors<T>; ++v) sum[v] = fma(factor, load(from + v * kWidth<T>), sum[v]);
      }
#pragma GCC unroll 16
      for (int v = 0; v < kUnitVectors<T>; ++v) store<T>(sum[v], out + i * width + column + v * kWidth<T>);
    }
  }
}

// Solves (I + T) R = R in place, R [n, width], by blocks of 16 rows.
template <class T>
HWY_INLINE void solve_residuals(const ChunkFactors<T>& f, std::int64_t width, T* R) {
  for (std::int64_t first = 0; first < f.tokens; first += 16) {
    const std::int64_t n = std::min<std::int64_t>(16, f.tokens - first);
    const T* m = f.erase_scores + first * f.score_row;
    T* rows = R + first * width;
    if (first > 0) tile_product<T>({m, f.score_row, 1, R, width, first, rows, width, rows, width}, n, width);
    lower_product<T, false>(m + first, f.score_row, n, width, rows, rows);
  }
}

// O += A R.
template <class T>
HWY_INLINE void read_residuals(const ChunkFactors<T>& f, std::int64_t width, const T* R, T* O) {
  for (std::int64_t first = 0; first < f.tokens; first += 16) {
    const std::int64_t n = std::min<std::int64_t>(16, f.tokens - first);
    const T* m = f.scores + first * f.score_row;
    T* rows = O + first * width;
    if (first > 0) tile_product<T>({m, f.score_row, 1, R, width, first, rows, width, rows, width}, n, width);
    lower_product<T, true>(m + first, f.score_row, n, width, R + first * width, rows);
  }
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
