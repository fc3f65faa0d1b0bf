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
// one of a must fit the registers (32 of them on AVX3, else 16: no wide tiles). Tiles of packed rows begin at multiples
// of kPanelRows, which no panel's border divides.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kTileRows = 12, kWideRows = 6, kPanelRows = 4;
#else
inline constexpr int kTileRows = 6, kWideRows = 0, kPanelRows = 2;
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
  T* keep;            // panels to copy b to, depth·kPanel elements apart, or nullptr
  const T* a_panels;  // of all rows, depth·kPanel elements apart, or nullptr
  std::int64_t row;   // the tile's first in them
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
  Any,     // what no other is for
  Near,    // contiguous rows of a, and of b as it is
  NearT,   // the same for a transposed a: contiguous columns
  Rows,    // contiguous rows of a, b in panels
  Panels,  // a and b in panels
  Keep,    // b as it is, copied to panels in passing
};

// The chains of R rows and V vectors from k on, `count` long, of a block `depth` deep. Every loop over accumulators is
// unrolled: they live in registers.
template <Walk kWalk, class T, int R, int V>
HWY_INLINE void chain(const Operands<T>& x, std::int64_t k, std::int64_t count, std::int64_t depth,
                      Vec<T> (&acc)[R][V]) {
  constexpr bool kKeep = kWalk == Walk::Keep, kNear = kWalk == Walk::Near || kWalk == Walk::NearT;
  constexpr bool kRows = kWalk == Walk::Rows || kWalk == Walk::Near;
  const bool a_panels = kWalk == Walk::Panels || (kKeep && x.a_panels);
  const std::int64_t a_row = a_panels || kWalk == Walk::NearT ? 1 : x.a_row;
  const std::int64_t a_step = kRows ? 1 : a_panels ? kPanel : x.a_step;
  const std::int64_t b_step = kWalk == Walk::Rows || kWalk == Walk::Panels ? kPanel : x.b_step;
  // A pointer for every three rows, the others are reached by x86's base + index·scale; for those in one panel; for all
  // where they adjoin.
  constexpr int kGroup = kKeep || kWalk == Walk::Panels ? kPanelRows : kWalk == Walk::NearT ? R : 3;
  constexpr int kGroups = (R + kGroup - 1) / kGroup;
  const T* a[kGroups];
#pragma GCC unroll 6
  for (int g = 0; g < kGroups; ++g) {
    const std::int64_t row = kGroup * g;
    a[g] = a_panels ? x.a_panels + ((x.row + row) / kPanel * depth + k) * kPanel + (x.row + row) % kPanel
                    : x.a + k * a_step + row * a_row;
  }
  const T* b = x.b + k * b_step;
  std::int64_t offset[V];
  T* keep[V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const std::int64_t n = v * kWidth<T>;
    offset[v] = kNear ? n : n / kPanel * x.b_panel + n % kPanel;
    if (kKeep) keep[v] = x.keep + (n / kPanel * depth + k) * kPanel + n % kPanel;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v] = zero<T>();
  }
  const auto step = [&](std::int64_t i) HWY_ATTR __attribute__((always_inline)) {
    Vec<T> y[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const T* from = b + i * b_step + offset[v];
      y[v] = load(from);
      if (kKeep) {
        __builtin_prefetch(from + kLooseRows * b_step, 0, 3);
        __builtin_prefetch(from + kLooseRowsToL2 * b_step, 0, 2);
        store(y[v], keep[v] + i * kPanel);
      } else if (!kNear) {
        __builtin_prefetch(from + kAheadRows<T> * b_step, 0, 3);
      }
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
#pragma GCC unroll 6
    for (int g = 0; g < kGroups; ++g) a[g] += n * a_step;
    if (kKeep) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) keep[v] += n * kPanel;
    }
  };
  std::int64_t left = count;
  if constexpr (kWalk == Walk::Rows || kWalk == Walk::Panels) {
    constexpr int kLine = 64 / sizeof(T);
    for (; left >= kLine; left -= kLine) {
      if (kWalk == Walk::Rows) {
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) __builtin_prefetch(a[r / kGroup] + r % kGroup * a_row + kLine, 0, 3);
      }
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

// The tile of R rows and V vectors at (row, column).
template <Walk kWalk, class T, int R, int V>
HWY_NOINLINE void tile(const BlockProduct<T>& p, const Operands<T>& x, std::int64_t row, std::int64_t column) {
  Vec<T> acc[R][V];
  HWY_ALIGN T parked[R * V * kWidth<T>];  // sums of the chains so far; at an edge, of all
  const auto park = [&]() HWY_ATTR {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) store(acc[r][v], parked + (r * V + v) * kWidth<T>);
    }
  };
  const T* before = nullptr;
  for (std::int64_t k = 0;; k += kChain) {
    const std::int64_t count = std::min(kChain, p.depth - k);
    chain<kWalk>(x, k, count, p.depth, acc);
    if (before) {
#pragma GCC unroll 16
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

// Tiles of 1, 2, … rows for each walk.
template <Walk kWalk, class T, int V, int... R>
constexpr std::array<Tile<T>, sizeof...(R)> tiles_of(std::integer_sequence<int, R...>) {
  return {tile<kWalk, T, R + 1, V>...};
}
template <class T, int V, Walk... kWalks>
const Tile<T>* tiles(Walk walk) {
  using Rows = std::make_integer_sequence<int, V == 4 ? kWideRows : kTileRows>;
  static constexpr std::array kTiles = {tiles_of<kWalks, T, V>(Rows())...};
  return kTiles[static_cast<std::size_t>(walk)].data();
}
// By the number of a walk: in the order of Walk. Wide tiles read b as it is.
template <class T>
const Tile<T>* tiles(int vectors, Walk walk) {
  using enum Walk;
  if (vectors == 2) return tiles<T, 2, Any, Near, NearT, Rows, Panels, Keep>(walk);
  if (vectors == 1) return tiles<T, 1, Any, Near, NearT, Rows, Panels, Keep>(walk);
  if constexpr (kWideRows > 0) return tiles<T, 4, Any, Near, NearT>(walk);
  return nullptr;
}

// How rows are dealt to tiles: evenly, since low tiles wait for the latency of their few chains, in groups of `unit`.
struct Deal {
  Deal(std::int64_t rows, std::int64_t most, std::int64_t unit)
      : total(rows), unit(unit), count((rows + most - 1) / most) {
    const std::int64_t units = (rows + unit - 1) / unit;
    height = units / count;
    higher = units % count;
  }
  std::int64_t begin(std::int64_t i) const { return unit * (i * height + std::min(i, higher)); }
  std::int64_t rows(std::int64_t i) const { return std::min(begin(i + 1), total) - begin(i); }
  std::int64_t total, unit, count, height, higher;
};

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

template <class T>
Walk walk_of(const Operands<T>& x) {
  if (x.keep) return Walk::Keep;
  if (x.b_panel == kPanel) return x.a_step == 1 ? Walk::Near : x.a_row == 1 ? Walk::NearT : Walk::Any;
  return x.a_panels ? Walk::Panels : x.a_step == 1 ? Walk::Rows : Walk::Any;
}

// Rows outside, columns inside: a tile's rows of a stay in L1 while b passes by from L2.
template <class T>
void multiply_block_t(const BlockProduct<T>& p) {
  // A loose b of at most 64 KiB is read where it is by all tiles, not copied by the first.
  const bool in_place =
      p.panels && p.b.n_stride == 1 && p.depth * p.b.k_stride * static_cast<std::int64_t>(sizeof(T)) <= 1 << 16;
  // Wide tiles load less, but more of it from b: worth it while b stays near.
  const bool wide = kWideRows > 0 && in_place && p.columns >= 4 * kWidth<T>;
  // Wide tiles begin at rows that share no panel.
  T* const a_panels = wide ? nullptr : p.a_panels;
  const Deal deal(p.rows, wide ? kWideRows : kTileRows, a_panels ? kPanelRows : 1);
  if (a_panels) {
    pack_panels(RightOperand<T>{p.a, p.a_step, p.a_row}, p.depth, p.rows, a_panels, p.depth * kPanel);
  }
  for (std::int64_t i = 0; i < deal.count; ++i) {
    const std::int64_t row = deal.begin(i), rows = deal.rows(i);
    Operands<T> x{p.a + row * p.a_row, p.a_row, p.a_step, nullptr, 0, 0, nullptr, a_panels, row};
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
      const bool narrow = p.columns - n <= kWidth<T>;
      tiles<T>(narrow ? 1 : static_cast<int>(vectors), walk_of(x))[rows - 1](p, x, row, n);
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
