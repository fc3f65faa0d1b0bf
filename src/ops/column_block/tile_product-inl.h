// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// Small matrix products in register tiles: what the chunked forms of matrix memories are made of.
#if defined(STEPWELL_OPS_TILE_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_OPS_TILE_PRODUCT_INL_H_
#undef STEPWELL_OPS_TILE_PRODUCT_INL_H_
#else
#define STEPWELL_OPS_TILE_PRODUCT_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

// out[r,c] = out_scale·(scale·start[r,c] + Σ_k a[r,k]·b[k,c])
//
// Shapes  a[r,k] at a[r·a_row + k·a_step]; b, start and out by panels of 16 contiguous columns, which lie b_panel (of
//         b) and out_panel (of the others) apart.
// Range   start null: 0; a scale of rows, of columns or none; out_scale of rows or none; out may be start.
// Order   each element is one chain of fused multiply-adds in increasing k.
template <class T>
struct TileProduct {
  const T* a;
  std::int64_t a_row, a_step;
  const T* b;
  std::int64_t b_step, depth;
  const T* start;
  std::int64_t start_row;
  T* out;
  std::int64_t out_row;
  const T *row_scale = nullptr, *column_scale = nullptr, *out_scale = nullptr;
  std::int64_t b_panel = 16, out_panel = 16;
};

// Most rows of a tile V vectors wide: the accumulators, V vectors of b and one of a fit the registers.
#if HWY_TARGET == HWY_AVX3
template <int V>
inline constexpr int kProductRows = V == 1 ? 16 : 12;
#else
template <int V>
inline constexpr int kProductRows = 6;
#endif

// Rows of a tile times a number each.
template <class T, int R, int V>
HWY_INLINE void multiply_rows(const T* scales, Vec<T> (&acc)[R][V]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const Vec<T> scale = set(scales[r]);
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) acc[r][v] = hn::Mul(scale, acc[r][v]);
  }
}

// Rows row … row+R−1 of V vectors of columns. Every loop over accumulators is unrolled: they live in registers.
template <class T, int V, int R>
HWY_NOINLINE void product_tile(const TileProduct<T>& p, std::int64_t row, std::int64_t column) {
  // A pointer for every three rows: the others are reached by x86's base + index·scale.
  constexpr int kGroups = (R + 2) / 3;
  // Where the vectors of a row lie.
  std::int64_t in_b[V], in_out[V];
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const std::int64_t panel = (column + v * kWidth<T>) / 16, at = (column + v * kWidth<T>) % 16;
    in_b[v] = panel * p.b_panel + at;
    in_out[v] = panel * p.out_panel + at;
  }
  Vec<T> acc[R][V];
  if (p.start == nullptr) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) acc[r][v] = zero<T>();
    }
  } else {
    const T* start = p.start + row * p.start_row;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) acc[r][v] = load(start + r * p.start_row + in_out[v]);
    }
  }
  if (p.row_scale) multiply_rows(p.row_scale + row, acc);
  if (p.column_scale) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      const Vec<T> scale = load(p.column_scale + column + v * kWidth<T>);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) acc[r][v] = hn::Mul(scale, acc[r][v]);
    }
  }
  const T* a[kGroups];
#pragma GCC unroll 6
  for (int g = 0; g < kGroups; ++g) a[g] = p.a + (row + 3 * g) * p.a_row;
  const std::int64_t a_row = p.a_row, a_step = p.a_step, b_step = p.b_step;
  const T* b[V];
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) b[v] = p.b + in_b[v];
  for (std::int64_t k = p.depth; k > 0; --k) {
    Vec<T> y[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      y[v] = load(b[v]);
      b[v] += b_step;
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec<T> z = set(a[r / 3][r % 3 * a_row]);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) acc[r][v] = fma(z, y[v], acc[r][v]);
    }
#pragma GCC unroll 6
    for (int g = 0; g < kGroups; ++g) a[g] += a_step;
  }
  if (p.out_scale) multiply_rows(p.out_scale + row, acc);
  T* out = p.out + row * p.out_row;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store<T>(acc[r][v], out + r * p.out_row + in_out[v]);
  }
}

template <class T>
using ProductTile = void (*)(const TileProduct<T>&, std::int64_t, std::int64_t);
template <class T, int V, int... R>
constexpr std::array<ProductTile<T>, sizeof...(R)> product_tiles_of(std::integer_sequence<int, R...>) {
  return {product_tile<T, V, R + 1>...};
}
template <class T, int V>
constexpr std::array<ProductTile<T>, kProductRows<V>> kProductTiles =
    product_tiles_of<T, V>(std::make_integer_sequence<int, kProductRows<V>>());

// The columns from `column` on that are V vectors wide; rows dealt evenly to tiles, since low tiles wait for the
// latency of their few chains.
template <class T, int V>
HWY_INLINE void product_columns(const TileProduct<T>& p, std::int64_t rows, std::int64_t column) {
  const std::int64_t tiles = (rows + kProductRows<V> - 1) / kProductRows<V>;
  for (std::int64_t i = 0, row = 0; i < tiles; ++i) {
    const std::int64_t height = rows / tiles + (i < rows % tiles);
    kProductTiles<T, V>[height - 1](p, row, column);
    row += height;
  }
}

// All of a product of `rows` by `columns`, a multiple of 16.
template <class T>
HWY_INLINE void tile_product(const TileProduct<T>& p, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kPair = 2 * kWidth<T>;
  std::int64_t column = 0;
  for (; column + kPair <= columns; column += kPair) product_columns<T, 2>(p, rows, column);
  if constexpr (kPair > 16) {
    if (column < columns) product_columns<T, 1>(p, rows, column);
  }
}

// The transpose of a block of 16×16.
template <class T>
HWY_INLINE void transpose_block(const T* from, std::int64_t from_row, T* to, std::int64_t to_row) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t i = 0; i < 16; ++i) {
    for (std::int64_t j = 0; j < 16; ++j) to[j * to_row + i] = from[i * from_row + j];
  }
#else
  // By squares of 128-bit vectors, which every target has.
  const hn::Full128<T> tag;
  if constexpr (sizeof(T) == 8) {
    for (std::int64_t i = 0; i < 16; i += 2) {
#pragma GCC unroll 8
      for (std::int64_t j = 0; j < 16; j += 2) {
        const auto a = hn::LoadU(tag, from + i * from_row + j), b = hn::LoadU(tag, from + (i + 1) * from_row + j);
        hn::StoreU(hn::InterleaveLower(tag, a, b), tag, to + j * to_row + i);
        hn::StoreU(hn::InterleaveUpper(tag, a, b), tag, to + (j + 1) * to_row + i);
      }
    }
  } else {
    for (std::int64_t i = 0; i < 16; i += 4) {
#pragma GCC unroll 4
      for (std::int64_t j = 0; j < 16; j += 4) {
        const T* at = from + i * from_row + j;
        const auto a = hn::LoadU(tag, at), b = hn::LoadU(tag, at + from_row);
        const auto c = hn::LoadU(tag, at + 2 * from_row), d = hn::LoadU(tag, at + 3 * from_row);
        const auto ac0 = hn::InterleaveLower(tag, a, c), ac1 = hn::InterleaveUpper(tag, a, c);
        const auto bd0 = hn::InterleaveLower(tag, b, d), bd1 = hn::InterleaveUpper(tag, b, d);
        T* out = to + j * to_row + i;
        hn::StoreU(hn::InterleaveLower(tag, ac0, bd0), tag, out);
        hn::StoreU(hn::InterleaveUpper(tag, ac0, bd0), tag, out + to_row);
        hn::StoreU(hn::InterleaveLower(tag, ac1, bd1), tag, out + 2 * to_row);
        hn::StoreU(hn::InterleaveUpper(tag, ac1, bd1), tag, out + 3 * to_row);
      }
    }
  }
#endif
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
