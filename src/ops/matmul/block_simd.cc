// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/block_simd.cc"
#include "ops/matmul/block_simd.h"

#include <algorithm>
#include <array>
#include <utility>

#include "hwy/foreach_target.h"

#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

// Most rows of a register tile, which is two vectors wide: 2·kTileRows accumulators, two vectors of b and one of a must
// fit the registers (32 of them on AVX3, else 16).
#if HWY_TARGET == HWY_AVX3
inline constexpr int kTileRows = 12;
#else
inline constexpr int kTileRows = 6;
#endif

// Adds, biases and stores a tile that ends inside a vector; `tile` is [rows][V·kWidth].
template <class T>
HWY_NOINLINE void finish_edge(const BlockProduct<T>& p, const T* tile, int rows, int width, std::int64_t row,
                              std::int64_t column, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t n = 0; n < columns; n += kWidth<T>) {
      const std::int64_t lanes = std::min<std::int64_t>(columns - n, kWidth<T>);
      Vec<T> x = load(tile + r * width + n);
      if (p.partial) x = hn::Add(load_tail(p.partial + (row + r) * p.partial_row + column + n, lanes), x);
      if (p.bias) x = hn::Add(x, load_tail(p.bias + column + n, lanes));
      if (p.old) x = hn::Add(load_tail(p.old + (row + r) * p.out_row + column + n, lanes), x);
      store_tail(x, p.out + (row + r) * p.out_row + column + n, lanes);
    }
  }
}

// The tile of R rows and V vectors at (row, column). Every loop over accumulators is unrolled: they live in registers.
template <class T, int R, int V>
HWY_NOINLINE void tile(const BlockProduct<T>& p, std::int64_t row, std::int64_t column) {
  Vec<T> acc[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) acc[r][v] = zero<T>();
  }
  // A pointer for every three rows: the others are reached by x86's base + index·scale.
  constexpr int kGroups = (R + 2) / 3;
  const T* a[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) a[g] = p.a + (row + 3 * g) * p.a_row;
  const T* b[V];
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const std::int64_t n = column + v * kWidth<T>;
    b[v] = p.b + n / kPanel * p.b_panel + n % kPanel;
  }
  const std::int64_t a_row = p.a_row, a_step = p.a_step, b_step = p.b_step;
  for (std::int64_t k = p.depth; k > 0; --k) {
    Vec<T> x[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      x[v] = load(b[v]);
      b[v] += b_step;
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec<T> y = set(a[r / 3][r % 3 * a_row]);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) acc[r][v] = fma(y, x[v], acc[r][v]);
    }
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) a[g] += a_step;
  }

  const std::int64_t columns = p.columns - column;
  if (columns < V * kWidth<T>) {
    HWY_ALIGN T edge[R * V * kWidth<T>];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) store(acc[r][v], edge + (r * V + v) * kWidth<T>);
    }
    return finish_edge(p, edge, R, V * kWidth<T>, row, column, columns);
  }
  if (p.partial) {
    const T* partial = p.partial + row * p.partial_row + column;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        acc[r][v] = hn::Add(load(partial + r * p.partial_row + v * kWidth<T>), acc[r][v]);
      }
    }
  }
  if (p.bias) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      const Vec<T> bias = load(p.bias + column + v * kWidth<T>);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) acc[r][v] = hn::Add(acc[r][v], bias);
    }
  }
  if (p.old) {
    const T* old = p.old + row * p.out_row + column;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) acc[r][v] = hn::Add(load(old + r * p.out_row + v * kWidth<T>), acc[r][v]);
    }
  }
  T* out = p.out + row * p.out_row + column;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store(acc[r][v], out + r * p.out_row + v * kWidth<T>);
  }
}

template <class T>
using Tile = void (*)(const BlockProduct<T>&, std::int64_t, std::int64_t);

// Tiles of 1 … kTileRows rows.
template <class T, int V, int... R>
constexpr std::array<Tile<T>, sizeof...(R)> tiles_of(std::integer_sequence<int, R...>) {
  return {tile<T, R + 1, V>...};
}
template <class T, int V>
constexpr std::array<Tile<T>, kTileRows> kTiles = tiles_of<T, V>(std::make_integer_sequence<int, kTileRows>());

// Columns outside, rows inside: the columns of b stay in L1 while a passes by. Rows are dealt evenly to the tiles,
// since low tiles wait for the latency of their few chains.
template <class T>
void multiply_block_t(const BlockProduct<T>& p) {
  const std::int64_t count = (p.rows + kTileRows - 1) / kTileRows;
  const std::int64_t height = p.rows / count, higher = p.rows % count;
  for (std::int64_t n = 0; n < p.columns; n += 2 * kWidth<T>) {
    const auto& tiles = p.columns - n > kWidth<T> ? kTiles<T, 2> : kTiles<T, 1>;
    std::int64_t row = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t rows = height + (i < higher);
      tiles[rows - 1](p, row, n);
      row += rows;
    }
  }
}
void multiply_block_f32(const BlockProduct<float>& p) { multiply_block_t(p); }
void multiply_block_f64(const BlockProduct<double>& p) { multiply_block_t(p); }

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(multiply_block_f32);
HWY_EXPORT(multiply_block_f64);

void multiply_block(const BlockProduct<float>& p) { HWY_DYNAMIC_DISPATCH(multiply_block_f32)(p); }
void multiply_block(const BlockProduct<double>& p) { HWY_DYNAMIC_DISPATCH(multiply_block_f64)(p); }

}  // namespace stepwell::ops
#endif
