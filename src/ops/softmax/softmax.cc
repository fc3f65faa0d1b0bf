// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/softmax.h"

#include <algorithm>
#include <string>

#include "stepwell/ops/elementwise.h"

#include "ops/softmax/softmax_simd.h"
#include "ops/tensor_arguments.h"

namespace stepwell::ops {

namespace {

using Index = std::int64_t;

void check_rows(const char* where, const char* name, const Tensor& t) {
  STEPWELL_CHECK(t.defined() && t.rank() >= 1, where,
                 std::string(name) + " is " + described(t) + ", expected at least one dimension");
}
void check_logits(const char* where, const Tensor& logits, const Tensor& targets, const Tensor& log_sums) {
  STEPWELL_CHECK(logits.defined() && logits.rank() == 2, where,
                 "logits are " + described(logits) + ", expected [rows, vocab]");
  check_tensor(where, "targets", targets, {logits.size(0)}, DType::I64);
  check_tensor(where, "log_sums", log_sums, {logits.size(0)}, logits.dtype());
}

// How many targets count; throws for one outside the vocabulary.
Index count_targets(const char* where, const Tensor& targets, Index vocab, Index ignore) {
  Index count = 0;
  Index row = 0;
  for (const Index target : targets.span<const Index>()) {
    STEPWELL_CHECK(target == ignore || (target >= 0 && target < vocab), where,
                   "target " + std::to_string(target) + " of row " + std::to_string(row) + ", expected 0 to " +
                       std::to_string(vocab - 1) + " or " + std::to_string(ignore) + " for none");
    count += target != ignore;
    ++row;
  }
  return count;
}

}  // namespace

void softmax(Context& ctx, const Tensor& x, const Tensor& y) {
  check_rows("softmax", "x", x);
  check_tensor("softmax", "y", y, x.shape(), x.dtype());
  dispatch_float(x.dtype(), "softmax", [&]<class T>(T) {
    const T* from = x.span<const T>().data();
    T* to = y.span<T>().data();
    const Index width = x.size(-1);
    for_row_tasks(ctx, x.shape().rows(), width, [&](Index first, Index rows) {
      softmax_rows(from + first * width, rows, width, to + first * width);
    });
  });
}

void softmax_backward(Context& ctx, const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  check_rows("softmax_backward", "y", y);
  check_tensor("softmax_backward", "grad_y", grad_y, y.shape(), y.dtype());
  check_tensor("softmax_backward", "grad_x", grad_x, y.shape(), y.dtype());
  dispatch_float(y.dtype(), "softmax_backward", [&]<class T>(T) {
    const T *value = y.span<const T>().data(), *from = grad_y.span<const T>().data();
    T* to = grad_x.span<T>().data();
    const Index width = y.size(-1);
    for_row_tasks(ctx, y.shape().rows(), width, [&](Index first, Index rows) {
      const Index at = first * width;
      softmax_backward_rows(value + at, from + at, rows, width, to + at);
    });
  });
}

void cross_entropy(Context& ctx, const Tensor& logits, const Tensor& targets, std::int64_t ignore,
                   const Tensor& log_sums, const Tensor& loss) {
  const char* where = "cross_entropy";
  check_logits(where, logits, targets, log_sums);
  STEPWELL_CHECK(loss.defined() && loss.numel() == 1 && loss.dtype() == logits.dtype(), where,
                 "loss is " + described(loss) + ", expected one element of the logits' dtype");
  const Index rows = logits.size(0), vocab = logits.size(1), count = count_targets(where, targets, vocab, ignore);
  const Tensor losses = Tensor::empty(ctx, {rows}, logits.dtype());
  dispatch_float(logits.dtype(), where, [&]<class T>(T) {
    const T* x = logits.span<const T>().data();
    const Index* target = targets.span<const Index>().data();
    T *sum_out = log_sums.span<T>().data(), *loss_out = losses.span<T>().data();
    for_row_tasks(ctx, rows, vocab, [&](Index first, Index n) {
      for (Index r = first; r < first + n; ++r) {
        if (target[r] == ignore) {
          sum_out[r] = loss_out[r] = 0;
        } else {
          cross_entropy_row(x + r * vocab, vocab, target[r], sum_out + r, loss_out + r);
        }
      }
    });
    sum(ctx, losses, loss);
    *loss.data<T>() /= static_cast<T>(std::max<Index>(count, 1));
  });
}

void cross_entropy_backward(Context& ctx, const Tensor& logits, const Tensor& targets, std::int64_t ignore,
                            const Tensor& log_sums, const Tensor& grad_loss, const Tensor& grad_logits) {
  const char* where = "cross_entropy_backward";
  check_logits(where, logits, targets, log_sums);
  check_tensor(where, "grad_logits", grad_logits, logits.shape(), logits.dtype());
  STEPWELL_CHECK(grad_loss.defined() && grad_loss.numel() == 1 && grad_loss.dtype() == logits.dtype(), where,
                 "grad_loss is " + described(grad_loss) + ", expected one element of the logits' dtype");
  const Index rows = logits.size(0), vocab = logits.size(1), count = count_targets(where, targets, vocab, ignore);
  dispatch_float(logits.dtype(), where, [&]<class T>(T) {
    const T *x = logits.span<const T>().data(), *sums = log_sums.span<const T>().data();
    const Index* target = targets.span<const Index>().data();
    T* out = grad_logits.span<T>().data();
    const T factor = *grad_loss.data<T>() / static_cast<T>(std::max<Index>(count, 1));
    for_row_tasks(ctx, rows, vocab, [&](Index first, Index n) {
      for (Index r = first; r < first + n; ++r) {
        if (target[r] == ignore) {
          std::fill_n(out + r * vocab, vocab, T{0});
        } else {
          cross_entropy_backward_row(x + r * vocab, vocab, target[r], sums[r], factor, out + r * vocab);
        }
      }
    });
  });
}

}  // namespace stepwell::ops
