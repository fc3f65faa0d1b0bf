// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/autograd/functions.h"
#include "stepwell/ops/softmax.h"

#include "autograd/arguments.h"
#include "autograd/recording.h"

namespace stepwell {

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
