// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// Reductions to one number.
#include "stepwell/autograd/functions.h"
#include "stepwell/ops/elementwise.h"
#include "stepwell/ops/softmax.h"

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

Variable cross_entropy(Context& ctx, const Variable& logits, const Tensor& targets, std::int64_t ignore) {
  const char* where = "cross_entropy";
  autograd::check_float(where, "logits", logits);
  const bool fits = logits.shape().rank() == 2 && targets.defined() && targets.dtype() == DType::I64 &&
                    targets.shape() == Shape({logits.size(0)});
  STEPWELL_CHECK(fits, where,
                 "logits " + logits.shape().to_string() + " and targets " + autograd::describe(targets) +
                     ", expected logits [rows, vocab] and targets I64 [rows]");
  const Tensor rows = logits.value().contiguous(ctx), entries = targets.contiguous(ctx);
  const Tensor log_sums = Tensor::empty(ctx, {rows.size(0)}, rows.dtype()),
               loss = Tensor::empty(ctx, {1}, rows.dtype());
  ops::cross_entropy(ctx, rows, entries, ignore, log_sums, loss);
  if (kRecords && recording({&logits})) {
    return record(loss, {logits}, [rows, entries, ignore, log_sums](Backward& b) {
      if (!b.grad().defined()) return;
      const Tensor grad_logits = Tensor::empty(b.ctx, rows.shape(), rows.dtype());
      ops::cross_entropy_backward(b.ctx, rows, entries, ignore, log_sums, b.grad(), grad_logits);
      b.give(0, grad_logits);
    });
  }
  return loss;
}

}  // namespace stepwell
