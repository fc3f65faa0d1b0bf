// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/matmul.h"

#include <algorithm>
#include <string>

#include "ops/matmul/block_simd.h"

namespace stepwell::ops {

namespace {

// One task computes at most this block of c: fixed, whatever the number of threads.
constexpr std::int64_t kTaskRows = 480, kTaskColumns = 256;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The right operand as b[k,n] = data[k·k_stride + n·n_stride], or packed panels [ceil(N/16), K, 16].
template <class T>
struct RightOperand {
  const T* data;
  std::int64_t k_stride, n_stride;
  bool packed;
};

// The block of c at (row, column): all of k, in steps of kDepth.
template <class T>
void task_product(View<const T, 2> a, const RightOperand<T>& b, View<T, 2> c, const MatmulOptions<T>& options,
                  std::int64_t row, std::int64_t column, Arena& scratch) {
  const std::int64_t K = a.extent[1];
  BlockProduct<T> p{};
  p.rows = std::min(kTaskRows, c.extent[0] - row);
  p.columns = std::min(kTaskColumns, c.extent[1] - column);
  p.a_row = a.stride[0];
  p.a_step = a.stride[1];
  p.b_step = kPanel;
  const bool scatter = c.stride[1] != 1 && p.columns > 1;
  T* const out = c.data + row * c.stride[0] + column * c.stride[1];
  T* sums = out;
  std::int64_t sums_row = c.stride[0];
  if (scatter || (options.accumulate && K > kDepth)) {
    sums_row = ceil_div(p.columns, kPanel) * kPanel;
    sums = scratch.allocate<T>(p.rows * sums_row);
  }
  T* panels = b.packed ? nullptr : scratch.allocate<T>(ceil_div(p.columns, kPanel) * kPanel * std::min(K, kDepth));
  for (std::int64_t k = 0; k == 0 || k < K; k += kDepth) {
    const bool last = k + kDepth >= K;
    p.depth = std::min(kDepth, K - k);
    p.a = a.data + row * a.stride[0] + k * a.stride[1];
    if (b.packed) {
      p.b = b.data + column / kPanel * K * kPanel + k * kPanel;
      p.b_panel = K * kPanel;
    } else {
      p.b = panels;
      p.b_panel = p.depth * kPanel;
      pack_panels(b.data + k * b.k_stride + column * b.n_stride, b.k_stride, b.n_stride, p.depth, p.columns, panels,
                  p.b_panel);
    }
    p.partial = k > 0 ? sums : nullptr;
    p.partial_row = sums_row;
    p.bias = last && options.bias ? options.bias + column : nullptr;
    p.old = last && options.accumulate && !scatter ? out : nullptr;
    p.out = last && !scatter ? out : sums;
    p.out_row = last && !scatter ? c.stride[0] : sums_row;
    multiply_block(p);
  }
  if (!scatter) return;
  for (std::int64_t m = 0; m < p.rows; ++m) {
    for (std::int64_t n = 0; n < p.columns; ++n) {
      T& element = out[m * c.stride[0] + n * c.stride[1]];
      const T sum = sums[m * sums_row + n];
      element = options.accumulate ? element + sum : sum;
    }
  }
}

template <class T>
void product(Context& ctx, View<const T, 2> a, const RightOperand<T>& b, View<T, 2> c,
             const MatmulOptions<T>& options) {
  const std::int64_t M = c.extent[0], N = c.extent[1];
  if (M == 0 || N == 0) return;
  const std::int64_t across = ceil_div(N, kTaskColumns);
  ctx.parallel_for(ceil_div(M, kTaskRows) * across, [&](std::int64_t task, Arena& scratch) {
    task_product(a, b, c, options, task / across * kTaskRows, task % across * kTaskColumns, scratch);
  });
}

std::string shape(std::int64_t rows, std::int64_t columns) {
  return "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
}
template <class T>
std::string shape(View<T, 2> v) {
  return shape(v.extent[0], v.extent[1]);
}

template <class T>
View<T, 2> transposed(View<T, 2> v) {
  return {v.data, {v.extent[1], v.extent[0]}, {v.stride[1], v.stride[0]}};
}

}  // namespace

template <class T>
PackedMatrix PackedMatrix::pack(Context& ctx, Product product, View<const T, 2> b) {
  if (product == Product::ABt) b = transposed(b);
  PackedMatrix packed;
  packed.k_ = b.extent[0];
  packed.n_ = b.extent[1];
  const std::int64_t K = packed.k_, panels = ceil_div(packed.n_, kPanel);
  packed.panels_ = Tensor::empty({panels, K, kPanel}, dtype_of<T>());
  T* out = packed.panels_.template data<T>();
  ctx.parallel_for(panels, [&](std::int64_t i, Arena&) {
    pack_panels(b.data + i * kPanel * b.stride[1], b.stride[0], b.stride[1], K,
                std::min(kPanel, packed.n_ - i * kPanel), out + i * K * kPanel, K * kPanel);
  });
  return packed;
}

template <class T>
void matmul(Context& ctx, Product product, View<const T, 2> a, View<const T, 2> b, View<T, 2> c,
            MatmulOptions<T> options) {
  const auto left = product == Product::AtB ? transposed(a) : a;
  const auto right = product == Product::ABt ? transposed(b) : b;
  STEPWELL_CHECK(
      left.extent[1] == right.extent[0] && c.extent[0] == left.extent[0] && c.extent[1] == right.extent[1], "matmul",
      std::string(product == Product::AB    ? "AB"
                  : product == Product::ABt ? "ABt"
                                            : "AtB") +
          ": a " + shape(a) + ", b " + shape(b) + ", c " + shape(c) + "; expected a product [M, K]·[K, N] = [M, N]");
  ops::product(ctx, left, RightOperand<T>{right.data, right.stride[0], right.stride[1], false}, c, options);
}

template <class T>
void matmul(Context& ctx, View<const T, 2> a, const PackedMatrix& b, View<T, 2> c, MatmulOptions<T> options) {
  STEPWELL_CHECK(b.defined(), "matmul", "the packed matrix is empty, expected one made by PackedMatrix::pack");
  STEPWELL_CHECK(a.extent[1] == b.in() && c.extent[0] == a.extent[0] && c.extent[1] == b.out(), "matmul",
                 "a " + shape(a) + ", packed b " + shape(b.in(), b.out()) + ", c " + shape(c) +
                     "; expected [M, K]·[K, N] = [M, N]");
  product(ctx, a, RightOperand<T>{b.panels().template data<T>(), 0, 0, true}, c, options);
}

template PackedMatrix PackedMatrix::pack(Context&, Product, View<const float, 2>);
template PackedMatrix PackedMatrix::pack(Context&, Product, View<const double, 2>);
template void matmul(Context&, Product, View<const float, 2>, View<const float, 2>, View<float, 2>,
                     MatmulOptions<float>);
template void matmul(Context&, Product, View<const double, 2>, View<const double, 2>, View<double, 2>,
                     MatmulOptions<double>);
template void matmul(Context&, View<const float, 2>, const PackedMatrix&, View<float, 2>, MatmulOptions<float>);
template void matmul(Context&, View<const double, 2>, const PackedMatrix&, View<double, 2>, MatmulOptions<double>);

}  // namespace stepwell::ops
