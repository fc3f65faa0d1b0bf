// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/short_conv.h"

#include "stepwell/autograd/functions.h"

#include "autograd/arguments.h"
#include "autograd/recording.h"
#include "autograd/saved_segments.h"

namespace stepwell {

namespace {

constexpr const char* kWhere = "short_conv";

struct ConvSaved {
  Tensor x, weight, bias;  // weight [D, K]
  Tensor state;            // the incoming one
  Shape weight_shape;      // as given
  ops::Activation activation;
  autograd::SavedSegments segments;
};

template <class T>
ops::ShortConvInputs<T> inputs(const Tensor& x, const Tensor& weight, const Tensor& bias, ops::Activation activation) {
  return {.x = x.view<const T, 2>(),
          .weight = weight.view<const T, 2>(),
          .bias = bias.defined() ? bias.data<T>() : nullptr,
          .activation = activation};
}

void short_conv_backward(Backward& b, const ConvSaved& saved) {
  const DType dtype = saved.x.dtype();
  // The kernel wants a gradient at y; where only the outgoing state has one, it is zero.
  const Tensor grad_y = b.grad(0).defined() ? b.grad(0) : Tensor::zeros(b.ctx, saved.x.shape(), dtype);
  const Tensor& grad_state = b.grad(1);
  auto wanted = [&](int i, const Tensor& like) {
    return b.wants(i) ? Tensor::empty(b.ctx, like.shape(), dtype) : Tensor();
  };
  const Tensor grad_x = wanted(0, saved.x), grad_weight = wanted(1, saved.weight), grad_bias = wanted(2, saved.bias),
               grad_in = wanted(3, saved.state);
  dispatch_float(dtype, kWhere, [&]<class T>(T) {
    ops::ShortConvGradients<T> out;
    if (grad_x.defined()) out.x = grad_x.view<T, 2>();
    if (grad_weight.defined()) out.weight = grad_weight.view<T, 2>();
    if (grad_bias.defined()) out.bias = grad_bias.data<T>();
    if (grad_in.defined()) out.state = grad_in.view<T, 3>();
    ops::short_conv_backward<T>(b.ctx, inputs<T>(saved.x, saved.weight, saved.bias, saved.activation),
                                saved.segments.get(), saved.state.view<const T, 3>(), grad_y.view<const T, 2>(),
                                grad_state.defined() ? grad_state.view<const T, 3>() : View<const T, 3>{}, out);
  });
  if (grad_x.defined()) b.give(0, grad_x);
  if (grad_weight.defined()) b.give(1, grad_weight.reshape(saved.weight_shape));
  if (grad_bias.defined()) b.give(2, grad_bias);
  if (grad_in.defined()) b.give(3, grad_in);
}

void check_arguments(const Variable& x, const Variable& weight, const Variable& bias, const Variable& state,
                     const Segments& segments) {
  autograd::check_float(kWhere, "x", x);
  autograd::check_dtype(kWhere, "weight", weight, "x", x);
  autograd::check_dtype(kWhere, "bias", bias, "x", x);
  autograd::check_dtype(kWhere, "state", state, "x", x);
  const int rank = weight.shape().rank();
  const bool kernel = (rank == 2 || (rank == 3 && weight.size(1) == 1)) && weight.size(-1) >= 1;
  STEPWELL_CHECK(x.shape().rank() == 2 && kernel && weight.size(0) == x.size(1), kWhere,
                 "x " + x.shape().to_string() + " and weight " + weight.shape().to_string() +
                     ", expected x [L, D] and weight [D, K] or [D, 1, K] with K ≥ 1");
  const std::int64_t D = x.size(1), K = weight.size(-1);
  autograd::check_shape(kWhere, "bias", bias.value(), {D});
  autograd::check_shape(kWhere, "state", state.value(), {segments.count(), K, D});
  autograd::check_tokens(kWhere, x, segments);
}

}  // namespace

std::pair<Variable, Variable> short_conv(Context& ctx, const Variable& x, const Variable& weight, const Variable& bias,
                                         Variable state, const Segments& segments, ops::Activation activation) {
  check_arguments(x, weight, bias, state, segments);
  const std::int64_t D = x.size(1), K = weight.size(-1);
  const Tensor kernel = weight.value().contiguous(ctx).reshape({D, K});
  const bool recorded = kRecords && recording({&x, &weight, &bias, &state});
  const Variable incoming = recorded ? state : Variable();
  const Tensor next = autograd::writable_state(ctx, std::move(state), {segments.count(), K, D}, x.dtype());
  const Tensor y = Tensor::empty(ctx, x.shape(), x.dtype());
  dispatch_float(x.dtype(), kWhere, [&]<class T>(T) {
    ops::short_conv<T>(ctx, inputs<T>(x.value(), kernel, bias.value(), activation), segments, next.view<T, 3>(),
                       y.view<T, 2>());
  });
  if (kRecords && recorded) {
    const Tensor before = incoming ? incoming.value() : Tensor::zeros(next.shape(), x.dtype());
    const ConvSaved saved{
        x.value(), kernel, bias.value(), before, weight.shape(), activation, autograd::SavedSegments(segments)};
    const std::array<Tensor, 2> outputs = {y, next};
    const std::array<Variable, 4> sources = {x, weight, bias, incoming};
    std::vector<Variable> both = record(outputs, sources, [saved](Backward& b) { short_conv_backward(b, saved); });
    return {std::move(both[0]), std::move(both[1])};
  }
  return {y, next};
}

}  // namespace stepwell
