// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/elementwise.h"

#include <algorithm>
#include <string>

#include "stepwell/autograd/functions.h"

#include "autograd/arguments.h"
#include "autograd/recording.h"

namespace stepwell {

namespace {

Tensor like(Context& ctx, const Tensor& t) { return Tensor::empty(ctx, t.shape(), t.dtype()); }

// Equal shapes, or b a trailing part of a's.
void check_pair(const char* where, const Variable& a, const Variable& b) {
  autograd::check_float(where, "a", a);
  autograd::check_float(where, "b", b);
  autograd::check_dtype(where, "b", b, "a", a);
  const auto whole = a.shape().extents(), part = b.shape().extents();
  STEPWELL_CHECK(part.size() <= whole.size() && std::equal(part.rbegin(), part.rend(), whole.rbegin()), where,
                 "a " + a.shape().to_string() + " and b " + b.shape().to_string() +
                     ", expected equal shapes, or b's a trailing part of a's");
}

// The gradient of b from one of a's shape: summed over the dimensions b was broadcast over.
Tensor summed_to(Context& ctx, const Tensor& g, const Shape& shape) {
  if (g.shape() == shape) return g;
  const Tensor sums = Tensor::empty(ctx, shape, g.dtype());
  ops::column_sums(ctx, g, sums);
  return sums;
}

using Pairwise = void (*)(Context&, const Tensor& a, const Tensor& b, const Tensor& out);
Tensor pairwise(Context& ctx, Pairwise op, const Tensor& a, const Tensor& b) {
  const Tensor out = like(ctx, a);
  op(ctx, a, b, out);
  return out;
}

Tensor scaled(Context& ctx, const Tensor& x, double factor) {
  const Tensor y = like(ctx, x);
  ops::scale(ctx, x, factor, y);
  return y;
}

Variable unary(Context& ctx, ops::Unary op, const char* where, const Variable& x) {
  autograd::check_float(where, "x", x);
  const Tensor source = x.value().contiguous(ctx), y = like(ctx, source);
  ops::unary(ctx, op, source, y);
  if (kRecords && recording({&x})) {
    return record(y, {x}, [op, source](Backward& b) {
      if (!b.grad().defined()) return;
      const Tensor grad_x = like(b.ctx, source);
      ops::unary_backward(b.ctx, op, source, b.grad(), grad_x);
      b.give(0, grad_x);
    });
  }
  return y;
}

}  // namespace

Variable add(Context& ctx, const Variable& a, const Variable& b) {
  check_pair("add", a, b);
  const Tensor y = pairwise(ctx, ops::add, a.value().contiguous(ctx), b.value().contiguous(ctx));
  if (kRecords && recording({&a, &b})) {
    return record(y, {a, b}, [part = b.shape()](Backward& back) {
      if (!back.grad().defined()) return;
      back.give(0, back.grad());
      if (back.wants(1)) back.give(1, summed_to(back.ctx, back.grad(), part));
    });
  }
  return y;
}

Variable sub(Context& ctx, const Variable& a, const Variable& b) {
  check_pair("sub", a, b);
  const Tensor y = pairwise(ctx, ops::sub, a.value().contiguous(ctx), b.value().contiguous(ctx));
  if (kRecords && recording({&a, &b})) {
    return record(y, {a, b}, [part = b.shape()](Backward& back) {
      if (!back.grad().defined()) return;
      back.give(0, back.grad());
      if (back.wants(1)) back.give(1, scaled(back.ctx, summed_to(back.ctx, back.grad(), part), -1));
    });
  }
  return y;
}

Variable mul(Context& ctx, const Variable& a, const Variable& b) {
  check_pair("mul", a, b);
  const Tensor left = a.value().contiguous(ctx), right = b.value().contiguous(ctx);
  const Tensor y = pairwise(ctx, ops::mul, left, right);
  if (kRecords && recording({&a, &b})) {
    const Tensor kept_a = b.requires_grad() ? left : Tensor(), kept_b = a.requires_grad() ? right : Tensor();
    return record(y, {a, b}, [kept_a, kept_b, part = b.shape()](Backward& back) {
      const Tensor& g = back.grad();
      if (!g.defined()) return;
      if (back.wants(0)) back.give(0, pairwise(back.ctx, ops::mul, g, kept_b));
      if (back.wants(1)) back.give(1, summed_to(back.ctx, pairwise(back.ctx, ops::mul, g, kept_a), part));
    });
  }
  return y;
}

Variable scale(Context& ctx, const Variable& x, double factor) {
  autograd::check_float("scale", "x", x);
  const Tensor y = scaled(ctx, x.value().contiguous(ctx), factor);
  if (kRecords && recording({&x})) {
    return record(y, {x}, [factor](Backward& b) {
      if (b.grad().defined()) b.give(0, scaled(b.ctx, b.grad(), factor));
    });
  }
  return y;
}

Variable clamp(Context& ctx, const Variable& x, double low, double high) {
  autograd::check_float("clamp", "x", x);
  const Tensor source = x.value().contiguous(ctx), y = like(ctx, source);
  ops::clamp(ctx, source, low, high, y);
  if (kRecords && recording({&x})) {
    return record(y, {x}, [source, low, high](Backward& b) {
      if (!b.grad().defined()) return;
      const Tensor grad_x = like(b.ctx, source);
      ops::clamp_backward(b.ctx, source, low, high, b.grad(), grad_x);
      b.give(0, grad_x);
    });
  }
  return y;
}

Variable exp(Context& ctx, const Variable& x) { return unary(ctx, ops::Unary::Exp, "exp", x); }
Variable log(Context& ctx, const Variable& x) { return unary(ctx, ops::Unary::Log, "log", x); }
Variable decay_rate(Context& ctx, const Variable& x) { return unary(ctx, ops::Unary::DecayRate, "decay_rate", x); }
Variable tanh(Context& ctx, const Variable& x) { return unary(ctx, ops::Unary::Tanh, "tanh", x); }
Variable sigmoid(Context& ctx, const Variable& x) { return unary(ctx, ops::Unary::Sigmoid, "sigmoid", x); }
Variable silu(Context& ctx, const Variable& x) { return unary(ctx, ops::Unary::Silu, "silu", x); }
Variable softplus(Context& ctx, const Variable& x) { return unary(ctx, ops::Unary::Softplus, "softplus", x); }
Variable log_sigmoid(Context& ctx, const Variable& x) { return unary(ctx, ops::Unary::LogSigmoid, "log_sigmoid", x); }
Variable relu(Context& ctx, const Variable& x) { return unary(ctx, ops::Unary::Relu, "relu", x); }
Variable elu_plus_one(Context& ctx, const Variable& x) { return unary(ctx, ops::Unary::EluPlusOne, "elu_plus_one", x); }
Variable gelu(Context& ctx, const Variable& x, Gelu form) {
  return unary(ctx, form == Gelu::Tanh ? ops::Unary::GeluTanh : ops::Unary::GeluErf, "gelu", x);
}

Variable soft_cap(Context& ctx, const Variable& x, double cap) {
  STEPWELL_CHECK(cap > 0, "soft_cap", "cap = " + std::to_string(cap) + ", expected more than 0");
  return scale(ctx, tanh(ctx, scale(ctx, x, 1 / cap)), cap);
}

}  // namespace stepwell
