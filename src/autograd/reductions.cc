// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// Reductions to one number: sum, mean, mean squared error.
#include "stepwell/autograd/functions.h"
#include "stepwell/ops/elementwise.h"

#include "autograd/arguments.h"
#include "autograd/recording.h"

namespace stepwell {

namespace {

// y = Σ x or mean x; every element of x has the same gradient.
Variable reduce(Context& ctx, const char* where, const Variable& x, bool mean) {
  autograd::check_float(where, "x", x);
  const Tensor y = Tensor::empty(ctx, {1}, x.dtype());
  (mean ? ops::mean : ops::sum)(ctx, x.value().contiguous(ctx), y);
  if (kRecords && recording({&x})) {
    const double share = mean && x.value().numel() > 0 ? 1.0 / static_cast<double>(x.value().numel()) : 1.0;
    return record(y, {x}, [shape = x.shape(), share](Backward& b) {
      if (!b.grad().defined()) return;
      const Tensor grad_x = Tensor::empty(b.ctx, shape, b.grad().dtype());
      ops::fill(b.ctx, grad_x, b.grad().at(0) * share);
      b.give(0, grad_x);
    });
  }
  return y;
}

}  // namespace

Variable sum(Context& ctx, const Variable& x) { return reduce(ctx, "sum", x, false); }
Variable mean(Context& ctx, const Variable& x) { return reduce(ctx, "mean", x, true); }

Variable mse_loss(Context& ctx, const Variable& x, const Tensor& target) {
  const char* where = "mse_loss";
  autograd::check_float(where, "x", x);
  autograd::check_float(where, "target", target);
  autograd::check_dtype(where, "target", target, "x", x);
  autograd::check_shape(where, "target", target, x.shape());
  const Tensor difference = Tensor::empty(ctx, x.shape(), x.dtype()), loss = Tensor::empty(ctx, {1}, x.dtype());
  ops::sub(ctx, x.value().contiguous(ctx), target.contiguous(ctx), difference);
  const Tensor squares = Tensor::empty(ctx, x.shape(), x.dtype());
  ops::mul(ctx, difference, difference, squares);
  ops::mean(ctx, squares, loss);
  if (kRecords && recording({&x})) {
    return record(loss, {x}, [difference](Backward& b) {
      if (!b.grad().defined()) return;
      const Tensor grad_x = Tensor::empty(b.ctx, difference.shape(), difference.dtype());
      ops::scale(b.ctx, difference, 2 * b.grad().at(0) / static_cast<double>(difference.numel()), grad_x);
      b.give(0, grad_x);
    });
  }
  return loss;
}

}  // namespace stepwell
