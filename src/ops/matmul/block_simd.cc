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

// Most rows of a register tile of two vectors' width, and of one of four: all of its accumulators, its vectors of b and
// one of a must fit the registers (32 of them on AVX3, else 16: no wide tiles).
#if HWY_TARGET == HWY_AVX3
inline constexpr int kTileRows = 12, kWideRows = 6;
#else
inline constexpr int kTileRows = 6, kWideRows = 0;
#endif

// How many k ahead b is prefetched: 1 KiB of a panel.
template <class T>
inline constexpr std::int64_t kAheadRows = 1024 / sizeof(T) / kPanel;

// The operands of one tile, at its first row and column.
template <class T>
struct Operands {
  const T* a;
  std::int64_t a_row, a_step;
  const T* b;
  std::int64_t b_panel, b_step;
  std::int64_t b_ahead;  // elements from what is read now to what to prefetch
  T* keep;               // panels to copy b to, depth·kPanel elements apart, or nullptr
};

// Adds, biases and stores a tile that ends inside a vector; `tile` is [rows][width].
template <class T>
HWY_NOINLINE void finish_edge(const BlockProduct<T>& p, const T* tile, int rows, int width, std::int64_t row,
                              std::int64_t column) {
  const std::int64_t columns = p.columns - column;
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

// Continues the chains of R rows and V vectors over all of depth. Every loop over accumulators is unrolled: they live
// in registers.
template <bool kKeep, class T, int R, int V>
HWY_INLINE void chain(const Operands<T>& x, std::int64_t depth, Vec<T> (&acc)[R][V]) {
  // A pointer for every three rows: the others are reached by x86's base + index·scale.
  constexpr int kGroups = (R + 2) / 3;
  const T* a[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) a[g] = x.a + 3 * g * x.a_row;
  const T* b = x.b;
  std::int64_t offset[V];
  T* keep[V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const std::int64_t n = v * kWidth<T>;
    offset[v] = n / kPanel * x.b_panel + n % kPanel;
    if (kKeep) keep[v] = x.keep + n / kPanel * depth * kPanel + n % kPanel;
  }
  const std::int64_t a_row = x.a_row, a_step = x.a_step, b_step = x.b_step, b_ahead = x.b_ahead;
  for (std::int64_t k = depth; k > 0; --k) {
    Vec<T> y[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      y[v] = load(b + offset[v]);
      // Rows of a loose b may all fall in a few sets of L1: to L2 only.
      if (V < 4) __builtin_prefetch(b + offset[v] + b_ahead, 0, kKeep ? 2 : 3);
      if (kKeep) {
        store(y[v], keep[v]);
        keep[v] += kPanel;
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec<T> z = set(a[r / 3][r % 3 * a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = fma(z, y[v], acc[r][v]);
    }
    b += b_step;
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) a[g] += a_step;
  }
}

// The tile of R rows and V vectors at (row, column).
template <class T, int R, int V>
HWY_NOINLINE void tile(const BlockProduct<T>& p, const Operands<T>& x, std::int64_t row, std::int64_t column) {
  Vec<T> acc[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v] = zero<T>();
  }
  if (x.keep) {
    chain<true>(x, p.depth, acc);
  } else {
    chain<false>(x, p.depth, acc);
  }
  if (p.columns - column < V * kWidth<T>) {
    HWY_ALIGN T edge[R * V * kWidth<T>];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) store(acc[r][v], edge + (r * V + v) * kWidth<T>);
    }
    return finish_edge(p, edge, R, V * kWidth<T>, row, column);
  }
  if (p.partial) {
    const std::int64_t step = p.partial_row;
    const T* partial = p.partial + row * step + column;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r, partial += step) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = hn::Add(load(partial + v * kWidth<T>), acc[r][v]);
    }
  }
  if (p.bias) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const Vec<T> bias = load(p.bias + column + v * kWidth<T>);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) acc[r][v] = hn::Add(acc[r][v], bias);
    }
  }
  // A copy: as far as the compiler knows, stores may change p.
  const std::int64_t step = p.out_row;
  if (p.old) {
    const T* old = p.old + row * step + column;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r, old += step) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = hn::Add(load(old + v * kWidth<T>), acc[r][v]);
    }
  }
  T* out = p.out + row * step + column;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r, out += step) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store(acc[r][v], out + v * kWidth<T>);
  }
}

template <class T>
using Tile = void (*)(const BlockProduct<T>&, const Operands<T>&, std::int64_t, std::int64_t);

// Tiles of 1 … kTileRows rows.
template <class T, int V, int... R>
constexpr std::array<Tile<T>, sizeof...(R)> tiles_of(std::integer_sequence<int, R...>) {
  return {tile<T, R + 1, V>...};
}
template <class T, int V>
constexpr std::array<Tile<T>, kTileRows> kTiles = tiles_of<T, V>(std::make_integer_sequence<int, kTileRows>());

template <class T>
constexpr std::array<Tile<T>, kWideRows> kWideTiles = tiles_of<T, 4>(std::make_integer_sequence<int, kWideRows>());

// How rows are dealt to tiles: evenly, since low tiles wait for the latency of their few chains.
struct Deal {
  Deal(std::int64_t rows, std::int64_t most)
      : count((rows + most - 1) / most), height(rows / count), higher(rows % count) {}
  std::int64_t begin(std::int64_t i) const { return i * height + std::min(i, higher); }
  std::int64_t rows(std::int64_t i) const { return height + (i < higher); }
  std::int64_t count, height, higher;
};

// Gathers the rows of a tile as [depth][rows]. A tile lower than a vector is stored as a whole vector, the rest of
// which the next k overwrites; the last k stores no more than it must.
template <class T>
void gather_tile(const BlockProduct<T>& p, std::int64_t row, std::int64_t rows) {
  const std::int64_t lanes = std::min<std::int64_t>(rows, kWidth<T>);
  const bool whole = row + std::max<std::int64_t>(rows, kWidth<T>) <= p.rows;
  const std::int64_t plain = !whole ? 0 : rows < kWidth<T> ? p.depth - 1 : p.depth;
  for (std::int64_t m = 0; m < rows; m += kWidth<T>) {
    const T* from = p.a + row + std::min(m, rows - lanes);
    T* to = p.tile + std::min(m, rows - lanes);
    std::int64_t k = 0;
    for (; k < plain; ++k, from += p.a_step, to += rows) store(load(from), to);
    for (; k < p.depth; ++k, from += p.a_step, to += rows) store_tail(load_tail(from, lanes), to, lanes);
  }
}

// Whether tiles can read columns n… of a loose b as they are.
template <class T>
bool readable(const BlockProduct<T>& p, std::int64_t n) {
  const std::int64_t columns = p.columns - n;
  return p.b.n_stride == 1 && (columns >= 2 * kWidth<T> || columns == kWidth<T>);
}

// Columns of a loose b for the first tile that needs them: where they can be read as they are, the tile copies them to
// the panels in passing (if there are tiles to come), else they are packed now. `n` is the first column.
template <class T>
void open_columns(const BlockProduct<T>& p, std::int64_t n, bool more_tiles, Operands<T>& x) {
  constexpr std::int64_t kColumns = 2 * kWidth<T>, kGroup = std::max<std::int64_t>(kColumns, kPanel);
  // Without tiles to come, every group of columns uses the same, warm, memory.
  T* const panels = p.panels + (more_tiles ? n / kPanel * p.depth * kPanel : 0);
  if (readable(p, n)) {
    x.b = p.b.data + n;
    x.b_panel = kPanel;
    x.b_step = p.b.k_stride;
    x.keep = more_tiles ? panels + n % kPanel : nullptr;
    return;
  }
  const std::int64_t first = n / kPanel * kPanel;
  if (n == first || p.b.n_stride == 1) {
    pack_panels(p.b.at(0, first), p.depth, std::min(kGroup, p.columns - first), panels, p.depth * kPanel);
  }
  x.b = panels + n % kPanel;
  x.b_panel = p.depth * kPanel;
  x.b_step = kPanel;
}

// Rows outside, columns inside: a tile's rows of a stay in L1 while b passes by from L2.
template <class T>
void multiply_block_t(const BlockProduct<T>& p) {
  // A loose b of at most 64 KiB is read where it is by all tiles, not copied by the first.
  const bool in_place =
      p.panels && p.b.n_stride == 1 && p.depth * p.b.k_stride * static_cast<std::int64_t>(sizeof(T)) <= 1 << 16;
  // Wide tiles load less, but more of it from b: worth it while b stays near.
  const bool wide = kWideRows > 0 && in_place && p.columns >= 4 * kWidth<T>;
  const Deal deal(p.rows, wide ? kWideRows : kTileRows);
  for (std::int64_t i = 0; i < deal.count; ++i) {
    const std::int64_t row = deal.begin(i), rows = deal.rows(i);
    Operands<T> x{p.a + row * p.a_row, p.a_row, p.a_step, nullptr, 0, 0, 0, nullptr};
    if (p.tile) {
      gather_tile(p, row, rows);
      x.a = p.tile;
      x.a_row = 1;
      x.a_step = rows;
    }
    for (std::int64_t n = 0, vectors; n < p.columns; n += vectors * kWidth<T>) {
      vectors = wide && p.columns - n >= 4 * kWidth<T> ? 4 : 2;
      x.keep = nullptr;
      if (p.panels && (i == 0 || (in_place && readable(p, n)))) {
        open_columns(p, n, deal.count > 1, x);
        if (in_place) x.keep = nullptr;
      } else {
        x.b_panel = p.panels ? p.depth * kPanel : p.b.panel;
        x.b_step = kPanel;
        x.b = (p.panels ? p.panels : p.b.data) + n / kPanel * x.b_panel + n % kPanel;
      }
      x.b_ahead = x.b_step * kAheadRows<T>;
      const bool narrow = p.columns - n <= kWidth<T>;
      const auto* tiles = vectors == 4 ? kWideTiles<T>.data() : narrow ? kTiles<T, 1>.data() : kTiles<T, 2>.data();
      tiles[rows - 1](p, x, row, n);
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
