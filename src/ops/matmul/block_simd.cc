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

// Most rows of a register tile of two vectors' width, of one of four, and of one whose rows are packed: all of its
// accumulators, its vectors of b and one of a must fit the registers (32 of them on AVX3, else 16: no wide tiles). A
// multiply-add of AVX3 broadcasts from memory: tiles one vector wide leave little to do but that.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kShortRows = 12, kWideRows = 6, kTallRows = 24, kTallVectors = 1;
#else
inline constexpr int kShortRows = 6, kWideRows = 0, kTallRows = 6, kTallVectors = 2;
#endif

// How many k ahead b is prefetched: 1 KiB of a panel; rows of a loose b, which may all fall in a few sets of the
// first-level cache, fewer there and more to the second.
template <class T>
inline constexpr std::int64_t kAheadRows = 1024 / sizeof(T) / kPanel;
inline constexpr std::int64_t kLooseRows = 8, kLooseRowsToL2 = 32;

// The operands of one tile, at its first row and column.
template <class T>
struct Operands {
  const T* a;
  std::int64_t a_row, a_step;
  const T* b;
  std::int64_t b_panel, b_step;
  T* keep = nullptr;         // the panel to copy b to
  const T* ahead = nullptr;  // fetched on the way: one of the rows to be packed next
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

// How a tile walks through its operands. Strides that the compiler knows leave little but loads and multiply-adds.
enum class Walk {
  Any,    // what no other is for
  Near,   // contiguous rows of a, and of b as it is
  NearT,  // the same for a transposed a: contiguous columns
  Rows,   // contiguous rows of a, b in panels
  Tall,   // packed rows of a, b in panels
  Keep,   // packed rows of a, b as it is, copied to its panel in passing
};

template <class T, int R, int V>
HWY_INLINE void clear(Vec<T> (&acc)[R][V]) {
#pragma GCC unroll 24
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v] = zero<T>();
  }
}

// The chains of R rows and V vectors from k on, `count` long, rows of a in place. Every loop over accumulators is
// unrolled: they live in registers.
template <Walk kWalk, class T, int R, int V>
HWY_INLINE void short_chain(const Operands<T>& x, std::int64_t k, std::int64_t count, Vec<T> (&acc)[R][V]) {
  constexpr bool kNear = kWalk == Walk::Near || kWalk == Walk::NearT;
  constexpr bool kRows = kWalk == Walk::Rows || kWalk == Walk::Near;
  const std::int64_t a_row = kWalk == Walk::NearT ? 1 : x.a_row, a_step = kRows ? 1 : x.a_step;
  const std::int64_t b_step = kWalk == Walk::Rows ? kPanel : x.b_step;
  // A pointer for every three rows, the others are reached by x86's base + index·scale; for all where they adjoin.
  constexpr int kGroup = kWalk == Walk::NearT ? R : 3, kGroups = (R + kGroup - 1) / kGroup;
  const T* a[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) a[g] = x.a + k * a_step + kGroup * g * a_row;
  const T* b = x.b + k * b_step;
  std::int64_t offset[V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const std::int64_t n = v * kWidth<T>;
    offset[v] = kNear ? n : n / kPanel * x.b_panel + n % kPanel;
  }
  clear<T>(acc);
  const auto step = [&](std::int64_t i) HWY_ATTR __attribute__((always_inline)) {
    Vec<T> y[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const T* from = b + i * b_step + offset[v];
      y[v] = load(from);
      if (!kNear) __builtin_prefetch(from + kAheadRows<T> * b_step, 0, 3);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec<T> z = set(a[r / kGroup][r % kGroup * a_row + i * a_step]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = fma(z, y[v], acc[r][v]);
    }
  };
  const auto advance = [&](std::int64_t n) HWY_ATTR __attribute__((always_inline)) {
    b += n * b_step;
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) a[g] += n * a_step;
  };
  std::int64_t left = count;
  if constexpr (kWalk == Walk::Rows) {
    constexpr int kLine = 64 / sizeof(T);
    for (; left >= kLine; left -= kLine) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) __builtin_prefetch(a[r / kGroup] + r % kGroup * a_row + kLine, 0, 3);
      for (int i = 0; i < kLine; i += 4) {
        step(0);
        step(1);
        step(2);
        step(3);
        advance(4);
      }
    }
  }
  for (; left > 0; --left) {
    step(0);
    advance(1);
  }
}

// The same with packed rows of a; V vectors are a panel or a part of one.
template <Walk kWalk, class T, int R, int V>
HWY_INLINE void tall_chain(const Operands<T>& x, std::int64_t k, std::int64_t count, Vec<T> (&acc)[R][V]) {
  constexpr bool kKeep = kWalk == Walk::Keep;
  const std::int64_t b_step = kKeep ? x.b_step : kPanel;
  const T *a = x.a + k * kTallRows, *b = x.b + k * b_step, *ahead = x.ahead + k;
  T* keep = kKeep ? x.keep + k * kPanel : nullptr;
  clear<T>(acc);
  const auto step = [&](std::int64_t i) HWY_ATTR __attribute__((always_inline)) {
    Vec<T> y[V];
    if (kKeep) {
      __builtin_prefetch(b + (i + kLooseRows) * b_step, 0, 3);
      __builtin_prefetch(b + (i + kLooseRowsToL2) * b_step, 0, 2);
    }
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      y[v] = load(b + i * b_step + v * kWidth<T>);
      if (kKeep) store(y[v], keep + i * kPanel + v * kWidth<T>);
    }
#pragma GCC unroll 24
    for (int r = 0; r < R; ++r) {
      const Vec<T> z = set(a[i * kTallRows + r]);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) acc[r][v] = fma(z, y[v], acc[r][v]);
    }
  };
  const auto advance = [&](std::int64_t n) HWY_ATTR __attribute__((always_inline)) {
    a += n * kTallRows;
    b += n * b_step;
    if (kKeep) keep += n * kPanel;
  };
  std::int64_t left = count;
  if constexpr (!kKeep) {
    for (; left >= 4; left -= 4) {
      __builtin_prefetch(ahead, 0, 2);
      ahead += 4;
      step(0);
      step(1);
      step(2);
      step(3);
      advance(4);
    }
  }
  for (; left > 0; --left) {
    step(0);
    advance(1);
  }
}

// The tile of R rows and V vectors at (row, column).
template <Walk kWalk, class T, int R, int V>
HWY_NOINLINE void tile(const BlockProduct<T>& p, const Operands<T>& x, std::int64_t row, std::int64_t column) {
  Vec<T> acc[R][V];
  HWY_ALIGN T parked[R * V * kWidth<T>];  // sums of the chains so far; at an edge, of all
  const auto park = [&]() HWY_ATTR {
#pragma GCC unroll 24
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) store(acc[r][v], parked + (r * V + v) * kWidth<T>);
    }
  };
  const T* before = nullptr;
  for (std::int64_t k = 0;; k += kChain) {
    const std::int64_t count = std::min(kChain, p.depth - k);
    if constexpr (kWalk == Walk::Tall || kWalk == Walk::Keep) {
      tall_chain<kWalk>(x, k, count, acc);
    } else {
      short_chain<kWalk>(x, k, count, acc);
    }
    if (before) {
#pragma GCC unroll 24
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) acc[r][v] = hn::Add(load(before + (r * V + v) * kWidth<T>), acc[r][v]);
      }
    }
    if (k + kChain >= p.depth) break;
    park();
    before = parked;
  }
  if (p.columns - column < V * kWidth<T>) {
    park();
    return finish_edge(p, parked, R, V * kWidth<T>, row, column);
  }
  if (p.partial) {
    const std::int64_t step = p.partial_row;
    const T* partial = p.partial + row * step + column;
#pragma GCC unroll 24
    for (int r = 0; r < R; ++r, partial += step) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = hn::Add(load(partial + v * kWidth<T>), acc[r][v]);
    }
  }
  if (p.bias) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const Vec<T> bias = load(p.bias + column + v * kWidth<T>);
#pragma GCC unroll 24
      for (int r = 0; r < R; ++r) acc[r][v] = hn::Add(acc[r][v], bias);
    }
  }
  // A copy: as far as the compiler knows, stores may change p.
  const std::int64_t step = p.out_row;
  if (p.old) {
    const T* old = p.old + row * step + column;
#pragma GCC unroll 24
    for (int r = 0; r < R; ++r, old += step) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = hn::Add(load(old + v * kWidth<T>), acc[r][v]);
    }
  }
  T* out = p.out + row * step + column;
#pragma GCC unroll 24
  for (int r = 0; r < R; ++r, out += step) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store(acc[r][v], out + v * kWidth<T>);
  }
}

template <class T>
using Tile = void (*)(const BlockProduct<T>&, const Operands<T>&, std::int64_t, std::int64_t);

// Tiles of 1, 2, … rows for each walk.
template <Walk kWalk, class T, int V, int... R>
constexpr std::array<Tile<T>, sizeof...(R)> tiles_of(std::integer_sequence<int, R...>) {
  return {tile<kWalk, T, R + 1, V>...};
}
template <class T, int kMostRows, int V, Walk... kWalks>
const Tile<T>* tiles(int i) {
  static constexpr std::array kTiles = {tiles_of<kWalks, T, V>(std::make_integer_sequence<int, kMostRows>())...};
  return kTiles[static_cast<std::size_t>(i)].data();
}
// By the number of a walk: in the order of Walk. Wide tiles read b as it is.
template <class T>
const Tile<T>* short_tiles(int vectors, Walk walk) {
  using enum Walk;
  const int i = static_cast<int>(walk);
  if (vectors == 2) return tiles<T, kShortRows, 2, Any, Near, NearT, Rows>(i);
  if (vectors == 1) return tiles<T, kShortRows, 1, Any, Near, NearT, Rows>(i);
  if constexpr (kWideRows > 0) return tiles<T, kWideRows, 4, Any, Near, NearT>(i);
  return nullptr;
}

// How rows are dealt to tiles: evenly, since low tiles wait for the latency of their few chains.
struct Deal {
  Deal(std::int64_t rows, std::int64_t most)
      : count((rows + most - 1) / most), height(rows / count), higher(rows % count) {}
  std::int64_t begin(std::int64_t i) const { return i * height + std::min(i, higher); }
  std::int64_t rows(std::int64_t i) const { return begin(i + 1) - begin(i); }
  std::int64_t count, height, higher;
};

// Packs the panels from the one of column n on, of at most so many columns.
template <class T>
void pack_from(const BlockProduct<T>& p, std::int64_t n, std::int64_t columns, T* panels) {
  n = n / kPanel * kPanel;
  if (n < p.columns) {
    pack_panels(p.b.at(0, n), p.depth, std::min(columns, p.columns - n), panels, p.depth * kPanel);
  }
}

// Rows of a in place. Rows outside, columns inside: a tile's rows of a stay in L1 while b passes by from L2.
template <class T>
void multiply_short(const BlockProduct<T>& p) {
  constexpr std::int64_t kColumns = 2 * kWidth<T>;
  // Wide tiles load less, but more of it from b: worth it while b stays near or passes by once.
  const bool once = p.rows <= kWideRows, near = p.rows > kMostShortRows;
  const bool wide = kWideRows > 0 && p.in_place && (once || near) && p.columns >= 2 * kColumns;
  const Deal deal(p.rows, wide ? kWideRows : kShortRows);
  // Columns read in place: all but those of a tile that ends inside a vector.
  const std::int64_t rest = p.columns % kColumns;
  const std::int64_t in_place = !p.in_place ? 0 : rest == kWidth<T> ? p.columns : p.columns - rest;
  // A single row of tiles packs what it needs as it goes, to memory that is warm.
  const bool as_it_goes = p.panels && !p.in_place && deal.count == 1;
  if (p.panels && !as_it_goes) pack_from(p, in_place, p.columns, p.panels + in_place / kPanel * p.depth * kPanel);
  const T* const panels = p.panels ? p.panels : p.b.data;
  const std::int64_t panel = p.panels ? p.depth * kPanel : p.b.panel;
  for (std::int64_t i = 0; i < deal.count; ++i) {
    const std::int64_t row = deal.begin(i), rows = deal.rows(i);
    Operands<T> x{p.a + row * p.a_row, p.a_row, p.a_step, nullptr, 0, 0};
    for (std::int64_t n = 0, vectors; n < p.columns; n += vectors * kWidth<T>) {
      vectors = wide && p.columns - n >= 2 * kColumns ? 4 : p.columns - n > kWidth<T> ? 2 : 1;
      Walk walk = p.a_step == 1 ? Walk::Rows : Walk::Any;
      if (n < in_place) {
        x.b = p.b.data + n;
        x.b_panel = kPanel;
        x.b_step = p.b.k_stride;
        walk = p.a_step == 1 ? Walk::Near : p.a_row == 1 ? Walk::NearT : Walk::Any;
      } else {
        if (as_it_goes && (n % kPanel == 0)) pack_from(p, n, std::max(kColumns, kPanel), p.panels);
        x.b = panels + (as_it_goes ? 0 : n / kPanel * panel) + n % kPanel;
        x.b_panel = panel;
        x.b_step = kPanel;
      }
      short_tiles<T>(static_cast<int>(vectors), walk)[rows - 1](p, x, row, n);
    }
  }
}

// Rows of a packed, those of a tile or a few tiles at once. The first row of tiles copies a loose b with contiguous
// rows to panels.
template <class T>
void multiply_tall(const BlockProduct<T>& p) {
  constexpr std::int64_t kColumns = kTallVectors * kWidth<T>, kAtOnce = kMostTallRows / kTallRows;
  using enum Walk;
  const bool keeps = p.panels && p.b.n_stride == 1;
  const T* const panels = p.panels ? p.panels : p.b.data;
  const std::int64_t panel = p.panels ? p.depth * kPanel : p.b.panel;
  const std::int64_t kept = keeps ? p.columns / kPanel * kPanel : 0;
  if (p.panels) pack_from(p, kept, p.columns, p.panels + kept / kPanel * panel);
  const Deal deal(p.rows, kTallRows);
  const auto packed = [&](std::int64_t i) { return p.a_panel + i % kAtOnce * p.depth * kTallRows; };
  for (std::int64_t i = 0; i < deal.count; ++i) {
    for (std::int64_t t = i; i % kAtOnce == 0 && t < std::min(i + kAtOnce, deal.count); ++t) {
      pack_rows(p.a + deal.begin(t) * p.a_row, p.a_row, p.a_step, deal.rows(t), p.depth, packed(t), kTallRows);
    }
    const std::int64_t row = deal.begin(i), rows = deal.rows(i), later = row + kMostTallRows;
    Operands<T> x{packed(i), 1, kTallRows, nullptr, 0, p.b.k_stride};
    for (std::int64_t n = 0, j = 0; n < p.columns; n += kColumns, ++j) {
      x.ahead = p.a + (p.a_step == 1 && later + j < p.rows ? (later + j) * p.a_row : 0);
      const std::int64_t at = n / kPanel * panel + n % kPanel;
      const bool keep = i == 0 && n < kept;
      x.b = keep ? p.b.data + n : panels + at;
      x.keep = keep ? p.panels + at : nullptr;
      tiles<T, kTallRows, kTallVectors, Tall, Keep>(keep)[rows - 1](p, x, row, n);
    }
  }
}

template <class T>
void multiply_block_t(const BlockProduct<T>& p) {
  if (p.a_panel) return multiply_tall(p);
  multiply_short(p);
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
