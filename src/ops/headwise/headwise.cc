// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/headwise.h"

#include <algorithm>

#include "stepwell/ops/matmul.h"

#include "ops/headwise/headwise_simd.h"

namespace stepwell::ops {

namespace {

constexpr std::int64_t kTaskTokens = 64, kTaskFeatures = 64;

constexpr std::int64_t pieces(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }

// Group g's columns of rows [L, G·width].
template <class T>
View<T, 2> columns(View<T, 2> rows, std::int64_t g, std::int64_t width) {
  return {rows.data + g * width, {rows.extent[0], width}, rows.stride};
}

}  // namespace

template <class T>
void headwise_linear(Context& ctx, View<const T, 2> x, View<const T, 3> weight, const T* bias, View<T, 2> y) {
  const auto [G, out, in] = weight.extent;
  const std::int64_t L = x.extent[0];
  if (in != out || !headwise_fits(in, T())) {
    for (std::int64_t g = 0; g < G; ++g) {
      const View<const T, 2> block{weight.row(g), {out, in}, {weight.stride[1], weight.stride[2]}};
      matmul<T>(ctx, Product::ABt, columns(x, g, in), block, columns(y, g, out),
                {.bias = bias ? bias + g * out : nullptr});
    }
    return;
  }
  ArenaScope scope(ctx.scratch());
  const std::int64_t features = G * out;
  T* by_column = ctx.scratch().template allocate<T>(in * features);
  ctx.parallel_for(1, [&](std::int64_t, Arena&) {
    for (std::int64_t i = 0; i < in; ++i) {
      for (std::int64_t j = 0; j < features; ++j) by_column[i * features + j] = weight(j / out, j % out, i);
    }
  });
  ctx.parallel_for(pieces(L, kTaskTokens), [&](std::int64_t task, Arena&) {
    const std::int64_t first = task * kTaskTokens;
    headwise_blocks(HeadwiseBlocks<T>{in, features, std::min(kTaskTokens, L - first), x.row(first), x.stride[0],
                                      by_column, bias, y.row(first), y.stride[0]});
  });
}

template <class T>
void headwise_weight_gradient(Context& ctx, View<const T, 2> grad_y, View<const T, 2> x, View<T, 3> grad_weight) {
  const auto [G, out, in] = grad_weight.extent;
  const std::int64_t L = x.extent[0];
  if (in != out || !headwise_fits(in, T())) {
    for (std::int64_t g = 0; g < G; ++g) {
      matmul<T>(ctx, Product::AtB, columns(grad_y, g, out), columns(x, g, in),
                View<T, 2>::contiguous(grad_weight.row(g), {out, in}));
    }
    return;
  }
  ArenaScope scope(ctx.scratch());
  const std::int64_t features = G * out;
  T* by_column = ctx.scratch().template allocate<T>(in * features);
  ctx.parallel_for(pieces(features, kTaskFeatures), [&](std::int64_t task, Arena&) {
    const std::int64_t first = task * kTaskFeatures;
    headwise_sums(HeadwiseSums<T>{in, std::min(kTaskFeatures, features - first), L, grad_y.data + first,
                                  grad_y.stride[0], x.data + first, x.stride[0], by_column + first, features});
  });
  ctx.parallel_for(1, [&](std::int64_t, Arena&) {
    for (std::int64_t i = 0; i < in; ++i) {
      for (std::int64_t j = 0; j < features; ++j) grad_weight(j / out, j % out, i) = by_column[i * features + j];
    }
  });
}

template void headwise_linear(Context&, View<const float, 2>, View<const float, 3>, const float*, View<float, 2>);
template void headwise_linear(Context&, View<const double, 2>, View<const double, 3>, const double*, View<double, 2>);
template void headwise_weight_gradient(Context&, View<const float, 2>, View<const float, 2>, View<float, 3>);
template void headwise_weight_gradient(Context&, View<const double, 2>, View<const double, 2>, View<double, 3>);

}  // namespace stepwell::ops
