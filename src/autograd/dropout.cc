// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/dropout.h"

#include "stepwell/autograd/functions.h"

#include "autograd/arguments.h"
#include "autograd/recording.h"

namespace stepwell {

namespace {

Tensor masked(Context& ctx, const Tensor& x, const Tensor& keep, double p) {
  const Tensor y = Tensor::empty(ctx, x.shape(), x.dtype());
  dispatch_float(x.dtype(), "dropout", [&]<class T>(T) {
    ops::apply_dropout<T>(ctx, x.span<const T>(), keep.span<const std::uint8_t>(), static_cast<T>(1.0 / (1.0 - p)),
                          y.span<T>());
  });
  return y;
}

}  // namespace

Variable dropout(Context& ctx, const Variable& x, double p, const Rng& rng, std::uint64_t offset) {
  autograd::check_float("dropout", "x", x);
  STEPWELL_CHECK(p >= 0 && p < 1, "dropout", "p = " + std::to_string(p) + ", expected 0 ≤ p < 1");
  if (p == 0) return x;
  const Tensor source = x.value().contiguous(ctx);
  const Tensor keep = Tensor::empty(ctx, source.shape(), DType::U8);
  ops::dropout_mask(ctx, rng, offset, p, keep.span<std::uint8_t>());
  const Tensor y = masked(ctx, source, keep, p);
  if (kRecords && recording({&x})) {
    return record(y, {x}, [keep, p](Backward& b) {
      if (b.grad().defined()) b.give(0, masked(b.ctx, b.grad(), keep, p));
    });
  }
  return y;
}

}  // namespace stepwell
