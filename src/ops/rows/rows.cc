// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/rows.h"

#include <algorithm>
#include <cstring>

#include "ops/elementwise/elementwise_simd.h"

namespace stepwell::ops {

namespace {

// Elements of one parallel task: fixed by shape alone (X3).
constexpr std::int64_t kTaskElements = std::int64_t{1} << 15;
constexpr std::int64_t kSumBlock = 256;     // rows of one block of sum_rows
constexpr std::int64_t kColumnBlock = 128;  // columns of one task of add_rows
constexpr std::int64_t kTile = 32;          // side of a square of transpose

std::int64_t blocks(std::int64_t n, std::int64_t block) { return (n + block - 1) / block; }

template <class T>
void copy_row(const T* from, T* to, std::int64_t n) {
  if (n > 0) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
}

// Calls body(i) for every row 0 … rows−1, in tasks of about kTaskElements elements.
template <class Body>
void for_rows(Context& ctx, std::int64_t rows, std::int64_t width, Body body) {
  const std::int64_t per_task = std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(1, width));
  ctx.parallel_for(blocks(rows, per_task), [&](std::int64_t task, Arena&) {
    const std::int64_t end = std::min(rows, (task + 1) * per_task);
    for (std::int64_t i = task * per_task; i < end; ++i) body(i);
  });
}

}  // namespace

template <class T>
void copy_rows(Context& ctx, View<const T, 2> x, View<T, 2> out) {
  const std::int64_t N = x.extent[1];
  for_rows(ctx, x.extent[0], N, [&](std::int64_t i) { copy_row(x.row(i), out.row(i), N); });
}

template <class T>
void gather_rows(Context& ctx, View<const T, 2> x, const std::int64_t* index, View<T, 2> out) {
  const std::int64_t N = x.extent[1];
  for_rows(ctx, out.extent[0], N, [&](std::int64_t i) { copy_row(x.row(index[i]), out.row(i), N); });
}

template <class T>
void place_rows(Context& ctx, View<const T, 2> x, const std::int64_t* index, View<T, 2> out) {
  const std::int64_t N = x.extent[1];
  for_rows(ctx, out.extent[0], N, [&](std::int64_t i) { std::fill_n(out.row(i), N, T(0)); });
  for_rows(ctx, x.extent[0], N, [&](std::int64_t i) { copy_row(x.row(i), out.row(index[i]), N); });
}

template <class T>
void add_rows(Context& ctx, View<const T, 2> x, const std::int64_t* index, View<T, 2> out) {
  const std::int64_t M = x.extent[0], N = x.extent[1];
  for_rows(ctx, out.extent[0], N, [&](std::int64_t i) { std::fill_n(out.row(i), N, T(0)); });
  ctx.parallel_for(blocks(N, kColumnBlock), [&](std::int64_t task, Arena&) {
    const std::int64_t n = task * kColumnBlock, width = std::min(kColumnBlock, N - n);
    for (std::int64_t i = 0; i < M; ++i) {
      T* row = out.row(index[i]) + n;
      add_array(row, x.row(i) + n, row, width);
    }
  });
}

template <class T>
void sum_rows(Context& ctx, View<const T, 2> x, T* out) {
  const std::int64_t M = x.extent[0], N = x.extent[1], strips = blocks(N, kColumnBlock);
  const std::int64_t count = std::max<std::int64_t>(1, blocks(M, kSumBlock));
  ArenaScope scope(ctx.scratch());
  T* sums = count > 1 ? ctx.scratch().allocate<T>(count * N) : out;  // [count, N]
  ctx.parallel_for(count * strips, [&](std::int64_t task, Arena&) {
    const std::int64_t block = task / strips, m = block * kSumBlock, n = task % strips * kColumnBlock;
    column_sums_array(x.row(m) + n, x.stride[0], std::min(kSumBlock, M - m), std::min(kColumnBlock, N - n),
                      sums + block * N + n);
  });
  if (count == 1) return;
  ctx.parallel_for(strips, [&](std::int64_t task, Arena&) {
    const std::int64_t n = task * kColumnBlock;
    column_sums_array(sums + n, N, count, std::min(kColumnBlock, N - n), out + n);
  });
}

template <class T>
void transpose(Context& ctx, View<const T, 3> x, View<T, 3> out) {
  const std::int64_t M = x.extent[1], N = x.extent[2], strips = blocks(M, kTile);
  ctx.parallel_for(x.extent[0] * strips, [&](std::int64_t task, Arena&) {
    const std::int64_t b = task / strips, m0 = task % strips * kTile, m1 = std::min(M, m0 + kTile);
    for (std::int64_t n0 = 0; n0 < N; n0 += kTile) {
      for (std::int64_t n = n0; n < std::min(N, n0 + kTile); ++n) {
        for (std::int64_t m = m0; m < m1; ++m) out(b, n, m) = x(b, m, n);
      }
    }
  });
}

template void copy_rows(Context&, View<const float, 2>, View<float, 2>);
template void copy_rows(Context&, View<const double, 2>, View<double, 2>);
template void gather_rows(Context&, View<const float, 2>, const std::int64_t*, View<float, 2>);
template void gather_rows(Context&, View<const double, 2>, const std::int64_t*, View<double, 2>);
template void place_rows(Context&, View<const float, 2>, const std::int64_t*, View<float, 2>);
template void place_rows(Context&, View<const double, 2>, const std::int64_t*, View<double, 2>);
template void add_rows(Context&, View<const float, 2>, const std::int64_t*, View<float, 2>);
template void add_rows(Context&, View<const double, 2>, const std::int64_t*, View<double, 2>);
template void sum_rows(Context&, View<const float, 2>, float*);
template void sum_rows(Context&, View<const double, 2>, double*);
template void transpose(Context&, View<const float, 3>, View<float, 3>);
template void transpose(Context&, View<const double, 3>, View<double, 3>);

}  // namespace stepwell::ops
