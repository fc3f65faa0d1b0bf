// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// linear, headwise_linear and matmul.
#include "stepwell/autograd/functions.h"
#include "stepwell/ops/headwise.h"
#include "stepwell/ops/rows.h"

#include "autograd/arguments.h"
#include "autograd/recording.h"

namespace stepwell {

namespace {

// What the adjoints of linear need; a tensor is undefined where nothing asks for it.
struct LinearSaved {
  Tensor x;       // [rows, in], for the weight's gradient
  Tensor weight;  // [out, in], for x's gradient
  Shape x_shape;
  std::int64_t in = 0, out = 0;
};

void linear_backward(Backward& b, const LinearSaved& saved) {
  if (!b.grad().defined()) return;
  const Tensor g = b.grad().fold_rows();
  dispatch_float(g.dtype(), "linear", [&]<class T>(T) {
    if (b.wants(0)) {
      const Tensor grad_x = Tensor::empty(b.ctx, {g.size(0), saved.in}, g.dtype());
      ops::matmul<T>(b.ctx, ops::Product::AB, g.view<const T, 2>(), saved.weight.view<const T, 2>(),
                     grad_x.view<T, 2>());
      b.give(0, grad_x.reshape(saved.x_shape));
    }
    if (b.wants(1)) {
      const Tensor grad_weight = Tensor::empty(b.ctx, {saved.out, saved.in}, g.dtype());
      ops::matmul<T>(b.ctx, ops::Product::AtB, g.view<const T, 2>(), saved.x.view<const T, 2>(),
                     grad_weight.view<T, 2>());
      b.give(1, grad_weight);
    }
    if (b.wants(2)) {
      const Tensor grad_bias = Tensor::empty(b.ctx, {saved.out}, g.dtype());
      ops::sum_rows<T>(b.ctx, g.view<const T, 2>(), grad_bias.data<T>());
      b.give(2, grad_bias);
    }
  });
}

}  // namespace

Variable linear(Context& ctx, const Variable& x, const Variable& weight, const Variable& bias,
                const ops::PackedMatrix* packed) {
  const char* where = "linear";
  autograd::check_float(where, "x", x);
  autograd::check_dtype(where, "weight", weight, "x", x);
  autograd::check_dtype(where, "bias", bias, "x", x);
  STEPWELL_CHECK(x.shape().rank() >= 1 && weight.shape().rank() == 2 && x.size(-1) == weight.size(1), where,
                 "x " + x.shape().to_string() + " and weight " + weight.shape().to_string() +
                     ", expected x [..., in] and weight [out, in]");
  const std::int64_t in = weight.size(1), out = weight.size(0);
  autograd::check_shape(where, "bias", bias.value(), {out});
  STEPWELL_CHECK(!packed || (packed->in() == in && packed->out() == out), where,
                 "packed weight [" + std::to_string(packed->out()) + ", " + std::to_string(packed->in()) +
                     "] beside weight " + weight.shape().to_string());

  const Tensor rows = autograd::foldable(ctx, x.value()).fold_rows();
  const Tensor y = Tensor::empty(ctx, autograd::with_last(x.shape(), out), x.dtype());
  dispatch_float(x.dtype(), where, [&]<class T>(T) {
    const ops::MatmulOptions<T> options{.bias = bias ? bias.value().data<T>() : nullptr};
    if (packed) {
      ops::matmul<T>(ctx, rows.view<const T, 2>(), *packed, y.rows<T>(), options);
    } else {
      ops::matmul<T>(ctx, ops::Product::ABt, rows.view<const T, 2>(), weight.value().view<const T, 2>(), y.rows<T>(),
                     options);
    }
  });
  if (kRecords && recording({&x, &weight, &bias})) {
    LinearSaved saved{.x = weight.requires_grad() ? rows : Tensor(),
                      .weight = x.requires_grad() ? weight.value() : Tensor(),
                      .x_shape = x.shape(),
                      .in = in,
                      .out = out};
    return record(y, {x, weight, bias}, [saved](Backward& b) { linear_backward(b, saved); });
  }
  return y;
}

Variable headwise_linear(Context& ctx, const Variable& x, const Variable& weight, const Variable& bias) {
  const char* where = "headwise_linear";
  autograd::check_float(where, "x", x);
  autograd::check_dtype(where, "weight", weight, "x", x);
  autograd::check_dtype(where, "bias", bias, "x", x);
  STEPWELL_CHECK(x.shape().rank() >= 1 && weight.shape().rank() == 3 && x.size(-1) == weight.size(0) * weight.size(2),
                 where,
                 "x " + x.shape().to_string() + " and weight " + weight.shape().to_string() +
                     ", expected x [..., groups·in] and weight [groups, out, in]");
  const std::int64_t out = weight.size(0) * weight.size(1);
  autograd::check_shape(where, "bias", bias.value(), {out});
  const Tensor rows = autograd::foldable(ctx, x.value()).fold_rows();
  const Tensor y = Tensor::empty(ctx, autograd::with_last(x.shape(), out), x.dtype());
  dispatch_float(x.dtype(), where, [&]<class T>(T) {
    ops::headwise_linear<T>(ctx, rows.view<const T, 2>(), weight.value().view<const T, 3>(),
                            bias ? bias.value().data<T>() : nullptr, y.rows<T>());
  });
  if (kRecords && recording({&x, &weight, &bias})) {
    return record(y, {x, weight, bias}, [rows, shape = x.shape(), weight = weight.value(), out](Backward& b) {
      if (!b.grad().defined()) return;
      const Tensor g = b.grad().fold_rows();
      dispatch_float(g.dtype(), "headwise_linear", [&]<class T>(T) {
        if (b.wants(0)) {
          View<const T, 3> transposed = weight.view<const T, 3>();
          std::swap(transposed.extent[1], transposed.extent[2]);
          std::swap(transposed.stride[1], transposed.stride[2]);
          const Tensor grad_x = Tensor::empty(b.ctx, rows.shape(), g.dtype());
          ops::headwise_linear<T>(b.ctx, g.view<const T, 2>(), transposed, nullptr, grad_x.view<T, 2>());
          b.give(0, grad_x.reshape(shape));
        }
        if (b.wants(1)) {
          const Tensor grad_weight = Tensor::empty(b.ctx, weight.shape(), g.dtype());
          ops::headwise_weight_gradient<T>(b.ctx, g.view<const T, 2>(), rows.view<const T, 2>(),
                                           grad_weight.view<T, 3>());
          b.give(1, grad_weight);
        }
        if (b.wants(2)) {
          const Tensor grad_bias = Tensor::empty(b.ctx, {out}, g.dtype());
          ops::sum_rows<T>(b.ctx, g.view<const T, 2>(), grad_bias.data<T>());
          b.give(2, grad_bias);
        }
      });
    });
  }
  return y;
}

namespace {

// c = product(a, b); a backward is two more products of the same three kinds.
Tensor multiply(Context& ctx, ops::Product product, const Tensor& a, const Tensor& b) {
  const std::int64_t m = product == ops::Product::AtB ? a.size(1) : a.size(0);
  const std::int64_t n = product == ops::Product::ABt ? b.size(0) : b.size(1);
  const Tensor c = Tensor::empty(ctx, {m, n}, a.dtype());
  dispatch_float(a.dtype(), "matmul", [&]<class T>(T) {
    ops::matmul<T>(ctx, product, a.view<const T, 2>(), b.view<const T, 2>(), c.view<T, 2>());
  });
  return c;
}

void matmul_backward(Backward& back, ops::Product product, const Tensor& a, const Tensor& b) {
  const Tensor& g = back.grad();
  if (!g.defined()) return;
  using ops::Product;
  if (back.wants(0)) {
    switch (product) {
      case Product::AB: back.give(0, multiply(back.ctx, Product::ABt, g, b)); break;
      case Product::ABt: back.give(0, multiply(back.ctx, Product::AB, g, b)); break;
      case Product::AtB: back.give(0, multiply(back.ctx, Product::ABt, b, g)); break;
    }
  }
  if (back.wants(1)) {
    switch (product) {
      case Product::AB: back.give(1, multiply(back.ctx, Product::AtB, a, g)); break;
      case Product::ABt: back.give(1, multiply(back.ctx, Product::AtB, g, a)); break;
      case Product::AtB: back.give(1, multiply(back.ctx, Product::AB, a, g)); break;
    }
  }
}

}  // namespace

Variable matmul(Context& ctx, const Variable& a, const Variable& b, ops::Product product) {
  const char* where = "matmul";
  autograd::check_float(where, "a", a);
  autograd::check_dtype(where, "b", b, "a", a);
  const bool matrices = a.shape().rank() == 2 && b.shape().rank() == 2;
  STEPWELL_CHECK(
      matrices && a.size(product == ops::Product::AtB ? 0 : 1) == b.size(product == ops::Product::ABt ? 1 : 0), where,
      "a " + a.shape().to_string() + " and b " + b.shape().to_string() +
          ", expected two matrices with equal inner extents");
  const Tensor c = multiply(ctx, product, a.value(), b.value());
  if (kRecords && recording({&a, &b})) {
    const Tensor kept_a = b.requires_grad() ? a.value() : Tensor(), kept_b = a.requires_grad() ? b.value() : Tensor();
    return record(c, {a, b},
                  [product, kept_a, kept_b](Backward& back) { matmul_backward(back, product, kept_a, kept_b); });
  }
  return c;
}

}  // namespace stepwell
