// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/matmul.h"

#include <algorithm>
#include <string>

#include "ops/matmul/block_simd.h"

namespace stepwell::ops {

namespace {

// Of positive numbers.
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a <= b ? 1 : (a + b - 1) / b; }

// How c is cut into tasks, and k into passes. A task packs the columns of b it needs once for all of its rows, a pass
// of k at a time: as many columns as stay in the second-level cache; and its rows of a once for all of its columns. If
// all of k is one pass, no sums are kept and rows may be any number. What one task packs, its neighbours pack again, so
// there are no more of them than that takes or than there are threads. Bits do not depend on the cut.
struct Cut {
  Cut(std::int64_t M, std::int64_t N, std::int64_t K, std::int64_t element_size, std::int64_t threads) {
    constexpr std::int64_t kRows = 22 * kMostTallRows, kPanelBytes = 9 << 17, kMostBytes = 2048;
    const std::int64_t most = kMostBytes / element_size;
    depth = round_up(ceil_div(K, ceil_div(K, 3 * kChain)), kChain);
    columns = round_down(std::min(most, kPanelBytes / (depth * element_size)), kStep);
    rows = depth < K ? kRows : std::max(M, std::int64_t{1});
    // A task for every thread: first narrower ones, then lower ones.
    const auto few = [&] { return ceil_div(M, rows) * ceil_div(N, columns) < threads; };
    while (columns / 2 >= most / 4 && few()) columns = round_down(columns / 2, kStep);
    if (few()) rows = std::min(rows, kRows / 2);
    columns = round_up(ceil_div(N, ceil_div(N, columns)), kStep);
    rows = round_up(ceil_div(M, ceil_div(M, rows)), kMostTallRows);
    across = ceil_div(N, columns);
    down = ceil_div(M, rows);
  }
  std::int64_t depth, rows, columns, down, across;

 private:
  static constexpr std::int64_t kStep = 2 * kPanel;
  static std::int64_t round_up(std::int64_t n, std::int64_t step) { return ceil_div(n, step) * step; }
  static std::int64_t round_down(std::int64_t n, std::int64_t step) { return n / step * step; }
};

// One task: the block of c at (row, column).
template <class T>
class Task {
 public:
  Task(View<const T, 2> a, const RightOperand<T>& b, View<T, 2> c, const MatmulOptions<T>& options, const Cut& cut,
       std::int64_t row, std::int64_t column)
      : a_(a), b_(b), c_(c), options_(options), cut_(cut), row_(row), column_(column) {}

  // All of k, pass by pass. The sums of several passes stay in scratch until the last one: the rows of c may be
  // far apart, its columns too, or c may be what to add to.
  void run(Arena& scratch) const {
    const std::int64_t K = a_.extent[1], depth = std::min(K, cut_.depth);
    BlockProduct<T> p;
    p.rows = std::min(cut_.rows, c_.extent[0] - row_);
    p.columns = std::min(cut_.columns, c_.extent[1] - column_);
    p.a_row = a_.stride[0];
    p.a_step = a_.stride[1];
    if (!b_.panel) p.panels = scratch.allocate<T>(ceil_div(p.columns, kPanel) * kPanel * depth);
    // A loose b is read where it is by few rows, or if it is small; rows of a are packed if many columns use them.
    const bool few = p.rows <= kMostShortRows;
    constexpr std::int64_t kSmall = (1 << 16) / sizeof(T), kMany = 512 / sizeof(T);
    p.in_place = p.panels && b_.n_stride == 1 && (few || depth * b_.k_stride <= kSmall);
    if (!few && !p.in_place && p.columns >= kMany) p.a_panel = scratch.allocate<T>(kMostTallRows * depth);
    const bool scatter = c_.stride[1] != 1 && p.columns > 1;
    T* const out = &c_(row_, column_);
    T* sums = nullptr;
    if (scatter || K > cut_.depth) {
      p.partial_row = ceil_div(p.columns, kPanel) * kPanel;
      sums = scratch.allocate<T>(p.rows * p.partial_row);
    }
    for (std::int64_t k = 0; k == 0 || k < K; k += cut_.depth) {
      const bool last = k + cut_.depth >= K, finish = last && !scatter;
      p.depth = std::min(cut_.depth, K - k);
      p.a = a_.data + row_ * p.a_row + k * p.a_step;
      p.b = b_.at(k, column_);
      p.partial = k > 0 ? sums : nullptr;
      p.bias = last && options_.bias ? options_.bias + column_ : nullptr;
      p.old = finish && options_.accumulate ? out : nullptr;
      p.out = finish ? out : sums;
      p.out_row = finish ? c_.stride[0] : p.partial_row;
      multiply_block(p);
    }
    if (scatter) scatter_sums(p, sums);
  }

 private:
  void scatter_sums(const BlockProduct<T>& p, const T* sums) const {
    for (std::int64_t m = 0; m < p.rows; ++m) {
      for (std::int64_t n = 0; n < p.columns; ++n) {
        T& element = c_(row_ + m, column_ + n);
        const T sum = sums[m * p.partial_row + n];
        element = options_.accumulate ? element + sum : sum;
      }
    }
  }

  View<const T, 2> a_;
  const RightOperand<T>& b_;
  View<T, 2> c_;
  const MatmulOptions<T>& options_;
  const Cut& cut_;
  std::int64_t row_, column_;
};

template <class T>
void product(Context& ctx, View<const T, 2> a, const RightOperand<T>& b, View<T, 2> c,
             const MatmulOptions<T>& options) {
  const std::int64_t M = c.extent[0], N = c.extent[1];
  if (M == 0 || N == 0) return;
  const Cut cut(M, N, a.extent[1], sizeof(T), ctx.threads());
  ctx.parallel_for(cut.down * cut.across, [&](std::int64_t task, Arena& scratch) {
    Task<T>(a, b, c, options, cut, task / cut.across * cut.rows, task % cut.across * cut.columns).run(scratch);
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
    pack_panels(RightOperand<T>{b.data, b.stride[0], b.stride[1], 0}.at(0, i * kPanel), K,
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
  ops::product(ctx, left, RightOperand<T>{right.data, right.stride[0], right.stride[1], 0}, c, options);
}

template <class T>
void matmul(Context& ctx, View<const T, 2> a, const PackedMatrix& b, View<T, 2> c, MatmulOptions<T> options) {
  STEPWELL_CHECK(b.defined(), "matmul", "the packed matrix is empty, expected one made by PackedMatrix::pack");
  STEPWELL_CHECK(a.extent[1] == b.in() && c.extent[0] == a.extent[0] && c.extent[1] == b.out(), "matmul",
                 "a " + shape(a) + ", packed b " + shape(b.in(), b.out()) + ", c " + shape(c) +
                     "; expected [M, K]·[K, N] = [M, N]");
  product(ctx, a, RightOperand<T>{b.panels().template data<T>(), 0, 0, b.in() * kPanel}, c, options);
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
