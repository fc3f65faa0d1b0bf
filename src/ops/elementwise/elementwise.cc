// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/elementwise.h"

#include <algorithm>
#include <string>

#include "stepwell/ops/rows.h"

#include "ops/elementwise/elementwise_simd.h"
#include "ops/tensor_arguments.h"

namespace stepwell::ops {

namespace {

// Elements of one parallel task: fixed by shape alone (X3).
constexpr std::int64_t kTaskElements = std::int64_t{1} << 15;

std::int64_t tasks_of(std::int64_t n, std::int64_t each) { return (n + each - 1) / each; }

void check_same(const char* where, const char* name, const Tensor& t, const Tensor& like) {
  check_tensor(where, name, t, like.shape(), like.dtype());
}

// Whether `part` is a trailing part of `whole`: the last dimensions, with nothing left over.
bool is_trailing(const Shape& part, const Shape& whole) {
  if (part.rank() > whole.rank()) return false;
  for (int i = 1; i <= part.rank(); ++i) {
    if (part[-i] != whole[-i]) return false;
  }
  return true;
}
void check_trailing(const char* where, const char* name, const Tensor& part, const Tensor& whole) {
  STEPWELL_CHECK(part.defined() && part.dtype() == whole.dtype() && is_trailing(part.shape(), whole.shape()), where,
                 std::string(name) + " is " + described(part) + ", expected " + std::string(dtype_name(whole.dtype())) +
                     " and the last dimensions of " + whole.shape().to_string());
}

// Runs f(first, count) over the elements 0 … n−1 in tasks of kTaskElements.
template <class F>
void for_elements(Context& ctx, std::int64_t n, F&& f) {
  ctx.parallel_for(tasks_of(n, kTaskElements), [&](std::int64_t task, Arena&) {
    const std::int64_t first = task * kTaskElements;
    f(first, std::min(kTaskElements, n - first));
  });
}

void binary(Context& ctx, const char* where, Binary op, const Tensor& a, const Tensor& b, const Tensor& out) {
  STEPWELL_CHECK(a.defined(), where, "the first argument is not defined");
  check_trailing(where, "the second argument", b, a);
  check_same(where, "the output", out, a);
  const std::int64_t n = a.numel();
  if (n == 0) return;
  dispatch_float(a.dtype(), where, [&]<class T>(T) {
    const T *x = a.span<const T>().data(), *y = b.span<const T>().data();
    T* z = out.span<T>().data();
    if (b.numel() == n) {
      for_elements(ctx, n, [&](std::int64_t i, std::int64_t count) { binary_rows(op, x + i, y + i, z + i, 1, count); });
      return;
    }
    const std::int64_t width = b.numel(), rows = n / width;
    const std::int64_t each = std::max<std::int64_t>(1, kTaskElements / width);
    ctx.parallel_for(tasks_of(rows, each), [&](std::int64_t task, Arena&) {
      const std::int64_t r = task * each;
      binary_rows(op, x + r * width, y, z + r * width, std::min(each, rows - r), width);
    });
  });
}

}  // namespace

void unary(Context& ctx, Unary op, const Tensor& x, const Tensor& y) {
  STEPWELL_CHECK(x.defined(), "unary", "x is not defined");
  check_same("unary", "y", y, x);
  dispatch_float(x.dtype(), "unary", [&]<class T>(T) {
    const T* from = x.span<const T>().data();
    T* to = y.span<T>().data();
    for_elements(ctx, x.numel(), [&](std::int64_t i, std::int64_t n) { unary_array(op, from + i, to + i, n); });
  });
}

void unary_backward(Context& ctx, Unary op, const Tensor& x, const Tensor& grad_y, const Tensor& grad_x) {
  STEPWELL_CHECK(x.defined(), "unary_backward", "x is not defined");
  check_same("unary_backward", "grad_y", grad_y, x);
  check_same("unary_backward", "grad_x", grad_x, x);
  dispatch_float(x.dtype(), "unary_backward", [&]<class T>(T) {
    const T *at = x.span<const T>().data(), *from = grad_y.span<const T>().data();
    T* to = grad_x.span<T>().data();
    for_elements(ctx, x.numel(),
                 [&](std::int64_t i, std::int64_t n) { unary_backward_array(op, at + i, from + i, to + i, n); });
  });
}

void add(Context& ctx, const Tensor& a, const Tensor& b, const Tensor& out) {
  binary(ctx, "add", Binary::Add, a, b, out);
}
void sub(Context& ctx, const Tensor& a, const Tensor& b, const Tensor& out) {
  binary(ctx, "sub", Binary::Sub, a, b, out);
}
void mul(Context& ctx, const Tensor& a, const Tensor& b, const Tensor& out) {
  binary(ctx, "mul", Binary::Mul, a, b, out);
}

namespace {
void check_limits(const char* where, double low, double high) {
  STEPWELL_CHECK(low <= high, where,
                 "limits " + std::to_string(low) + " and " + std::to_string(high) + ", expected low ≤ high");
}
}  // namespace

void clamp(Context& ctx, const Tensor& x, double low, double high, const Tensor& y) {
  STEPWELL_CHECK(x.defined(), "clamp", "x is not defined");
  check_same("clamp", "y", y, x);
  check_limits("clamp", low, high);
  dispatch_float(x.dtype(), "clamp", [&]<class T>(T) {
    const T* from = x.span<const T>().data();
    T* to = y.span<T>().data();
    for_elements(ctx, x.numel(), [&](std::int64_t i, std::int64_t n) {
      clamp_array(from + i, static_cast<T>(low), static_cast<T>(high), to + i, n);
    });
  });
}

void clamp_backward(Context& ctx, const Tensor& x, double low, double high, const Tensor& grad_y,
                    const Tensor& grad_x) {
  STEPWELL_CHECK(x.defined(), "clamp_backward", "x is not defined");
  check_same("clamp_backward", "grad_y", grad_y, x);
  check_same("clamp_backward", "grad_x", grad_x, x);
  check_limits("clamp_backward", low, high);
  dispatch_float(x.dtype(), "clamp_backward", [&]<class T>(T) {
    const T *at = x.span<const T>().data(), *from = grad_y.span<const T>().data();
    T* to = grad_x.span<T>().data();
    for_elements(ctx, x.numel(), [&](std::int64_t i, std::int64_t n) {
      clamp_backward_array(at + i, static_cast<T>(low), static_cast<T>(high), from + i, to + i, n);
    });
  });
}

void scale(Context& ctx, const Tensor& x, double factor, const Tensor& out) {
  STEPWELL_CHECK(x.defined(), "scale", "x is not defined");
  check_same("scale", "the output", out, x);
  dispatch_float(x.dtype(), "scale", [&]<class T>(T) {
    const T* from = x.span<const T>().data();
    T* to = out.span<T>().data();
    for_elements(ctx, x.numel(),
                 [&](std::int64_t i, std::int64_t n) { scale_array(from + i, static_cast<T>(factor), to + i, n); });
  });
}

void accumulate(Context& ctx, const Tensor& x, double factor, const Tensor& out) {
  STEPWELL_CHECK(x.defined(), "accumulate", "x is not defined");
  check_same("accumulate", "the output", out, x);
  dispatch_float(x.dtype(), "accumulate", [&]<class T>(T) {
    const T* from = x.span<const T>().data();
    T* to = out.span<T>().data();
    for_elements(ctx, x.numel(), [&](std::int64_t i, std::int64_t n) {
      accumulate_array(from + i, static_cast<T>(factor), to + i, n);
    });
  });
}

void column_sums(Context& ctx, const Tensor& x, const Tensor& out) {
  STEPWELL_CHECK(x.defined(), "column_sums", "x is not defined");
  check_trailing("column_sums", "the output", out, x);
  const std::int64_t width = out.numel();
  if (width == 0) return;
  dispatch_float(x.dtype(), "column_sums", [&]<class T>(T) {
    const T* from = x.span<const T>().data();
    sum_rows(ctx, View<const T, 2>::contiguous(from, {x.numel() / width, width}), out.span<T>().data());
  });
}

namespace {

// The sum of x[0 … n−1] by levels: 16-lane sums of blocks, then of their sums, until one is left.
template <class T>
T sum_levels(Context& ctx, const T* x, std::int64_t n) {
  constexpr std::int64_t kBlock = 4096, kTaskBlocks = kTaskElements / kBlock;
  if (n == 0) return 0;
  ArenaScope scope(ctx.scratch());
  T* sums = ctx.scratch().allocate<T>(tasks_of(n, kBlock));
  while (true) {
    const std::int64_t blocks = tasks_of(n, kBlock);
    ctx.parallel_for(tasks_of(blocks, kTaskBlocks), [&](std::int64_t task, Arena&) {
      const std::int64_t end = std::min(blocks, (task + 1) * kTaskBlocks);
      for (std::int64_t b = task * kTaskBlocks; b < end; ++b)
        sums[b] = sum_array(x + b * kBlock, std::min(kBlock, n - b * kBlock));
    });
    if (blocks == 1) return sums[0];
    x = sums;
    n = blocks;
  }
}

void check_one(const char* where, const Tensor& x, const Tensor& out) {
  STEPWELL_CHECK(x.defined(), where, "x is not defined");
  STEPWELL_CHECK(out.defined() && out.numel() == 1 && out.dtype() == x.dtype(), where,
                 "the output is not one element of x's dtype");
}

}  // namespace

void sum(Context& ctx, const Tensor& x, const Tensor& out) {
  check_one("sum", x, out);
  dispatch_float(x.dtype(), "sum",
                 [&]<class T>(T) { *out.data<T>() = sum_levels(ctx, x.span<const T>().data(), x.numel()); });
}

void mean(Context& ctx, const Tensor& x, const Tensor& out) {
  check_one("mean", x, out);
  const std::int64_t n = x.numel();
  dispatch_float(x.dtype(), "mean", [&]<class T>(T) {
    *out.data<T>() = sum_levels(ctx, x.span<const T>().data(), n) / static_cast<T>(std::max<std::int64_t>(n, 1));
  });
}

void fill(Context& ctx, const Tensor& x, double value) {
  STEPWELL_CHECK(x.defined(), "fill", "x is not defined");
  dispatch_float(x.dtype(), "fill", [&]<class T>(T) {
    T* to = x.span<T>().data();
    for_elements(ctx, x.numel(),
                 [&](std::int64_t i, std::int64_t n) { std::fill_n(to + i, n, static_cast<T>(value)); });
  });
}

}  // namespace stepwell::ops
