// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// Softmax and the norms: functions of whole rows.
#include "stepwell/ops/norm.h"

#include "stepwell/autograd/functions.h"
#include "stepwell/ops/softmax.h"

#include "autograd/arguments.h"
#include "autograd/recording.h"

namespace stepwell {

namespace {

Tensor like(Context& ctx, const Tensor& t) { return Tensor::empty(ctx, t.shape(), t.dtype()); }

// A tensor for the gradient of input i, undefined if it is not wanted.
Tensor wanted(Backward& b, int i, const Tensor& input) { return b.wants(i) ? like(b.ctx, input) : Tensor(); }

void give(Backward& b, int i, const Tensor& gradient) {
  if (gradient.defined()) b.give(i, gradient);
}

void check_rows(const char* where, const Variable& x) {
  autograd::check_float(where, "x", x);
  STEPWELL_CHECK(x.shape().rank() >= 1, where, "x is a scalar, expected at least one dimension");
}

// A weight or bias over the last dimension of x.
void check_vector(const char* where, const char* name, const Variable& v, const Variable& x) {
  autograd::check_dtype(where, name, v, "x", x);
  autograd::check_shape(where, name, v.value(), {x.size(-1)});
}

void check_group(const char* where, const Variable& x, std::int64_t group) {
  STEPWELL_CHECK(group >= 0 && (group == 0 || x.size(-1) % group == 0), where,
                 "group = " + std::to_string(group) + " for x " + x.shape().to_string() +
                     ", expected a divisor of its last extent, or 0");
}

Tensor contiguous(Context& ctx, const Variable& v) { return v ? v.value().contiguous(ctx) : Tensor(); }

Variable any_rms_norm(Context& ctx, const char* where, const Variable& x, const Variable& z, const Variable& weight,
                      double eps, GateOrder order, std::int64_t group, GateActivation activation) {
  check_rows(where, x);
  autograd::check_dtype(where, "z", z, "x", x);
  autograd::check_shape(where, "z", z.value(), x.shape());
  check_vector(where, "weight", weight, x);
  STEPWELL_CHECK(eps >= 0, where, "eps = " + std::to_string(eps) + ", expected ≥ 0");
  check_group(where, x, group);
  const ops::RmsNormInputs in{.x = contiguous(ctx, x),
                              .z = contiguous(ctx, z),
                              .weight = contiguous(ctx, weight),
                              .eps = eps,
                              .group = group,
                              .gate = order,
                              .activation = activation};
  const Tensor y = like(ctx, in.x);
  ops::rms_norm(ctx, in, y);
  if (kRecords && recording({&x, &z, &weight})) {
    return record(y, {x, z, weight}, [in](Backward& b) {
      if (!b.grad().defined()) return;
      const ops::RmsNormGradients out{
          .x = wanted(b, 0, in.x), .z = wanted(b, 1, in.z), .weight = wanted(b, 2, in.weight)};
      ops::rms_norm_backward(b.ctx, in, b.grad(), out);
      give(b, 0, out.x);
      give(b, 1, out.z);
      give(b, 2, out.weight);
    });
  }
  return y;
}

}  // namespace

Variable softmax(Context& ctx, const Variable& x) {
  check_rows("softmax", x);
  const Tensor source = x.value().contiguous(ctx), y = like(ctx, source);
  ops::softmax(ctx, source, y);
  if (kRecords && recording({&x})) {
    return record(y, {x}, [y](Backward& b) {
      if (!b.grad().defined()) return;
      const Tensor grad_x = like(b.ctx, y);
      ops::softmax_backward(b.ctx, y, b.grad(), grad_x);
      b.give(0, grad_x);
    });
  }
  return y;
}

Variable layer_norm(Context& ctx, const Variable& x, const Variable& weight, const Variable& bias, double eps,
                    std::int64_t group, bool one_plus_weight) {
  const char* where = "layer_norm";
  check_rows(where, x);
  check_vector(where, "weight", weight, x);
  check_vector(where, "bias", bias, x);
  STEPWELL_CHECK(eps >= 0, where, "eps = " + std::to_string(eps) + ", expected ≥ 0");
  check_group(where, x, group);
  const ops::LayerNormInputs in{.x = contiguous(ctx, x),
                                .weight = contiguous(ctx, weight),
                                .bias = contiguous(ctx, bias),
                                .eps = eps,
                                .group = group,
                                .one_plus_weight = one_plus_weight};
  const Tensor y = like(ctx, in.x);
  ops::layer_norm(ctx, in, y);
  if (kRecords && recording({&x, &weight, &bias})) {
    return record(y, {x, weight, bias}, [in](Backward& b) {
      if (!b.grad().defined()) return;
      const ops::LayerNormGradients out{
          .x = wanted(b, 0, in.x), .weight = wanted(b, 1, in.weight), .bias = wanted(b, 2, in.bias)};
      ops::layer_norm_backward(b.ctx, in, b.grad(), out);
      give(b, 0, out.x);
      give(b, 1, out.weight);
      give(b, 2, out.bias);
    });
  }
  return y;
}

Variable rms_norm(Context& ctx, const Variable& x, const Variable& weight, double eps, std::int64_t group) {
  return any_rms_norm(ctx, "rms_norm", x, {}, weight, eps, GateOrder::Before, group, GateActivation::Silu);
}

Variable gated_rms_norm(Context& ctx, const Variable& x, const Variable& z, const Variable& weight, double eps,
                        GateOrder order, std::int64_t group, GateActivation activation) {
  autograd::check_float("gated_rms_norm", "z", z);
  return any_rms_norm(ctx, "gated_rms_norm", x, z, weight, eps, order, group, activation);
}

Variable sum_norm(Context& ctx, const Variable& x) {
  check_rows("sum_norm", x);
  const Tensor source = x.value().contiguous(ctx), y = like(ctx, source);
  ops::sum_norm(ctx, source, y);
  if (kRecords && recording({&x})) {
    return record(y, {x}, [source](Backward& b) {
      if (!b.grad().defined()) return;
      const Tensor grad_x = like(b.ctx, source);
      ops::sum_norm_backward(b.ctx, source, b.grad(), grad_x);
      b.give(0, grad_x);
    });
  }
  return y;
}

}  // namespace stepwell
