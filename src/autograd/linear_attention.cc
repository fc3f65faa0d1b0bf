// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/linear_attention.h"

#include <array>

#include "stepwell/autograd/functions.h"

#include "autograd/arguments.h"
#include "autograd/recording.h"
#include "autograd/saved_segments.h"

namespace stepwell {

namespace {

constexpr const char* kWhere = "linear_attention";

struct AttentionTensors {
  Tensor q, k, v, decay;
  double scale;
};

template <class T>
ops::LinearAttentionInputs<T> views(const AttentionTensors& t) {
  return {.q = t.q.view<const T, 3>(),
          .k = t.k.view<const T, 3>(),
          .v = t.v.view<const T, 3>(),
          .decay = t.decay.data<T>(),
          .scale = static_cast<T>(t.scale)};
}

// A state [S, H, K, V] as the kernel takes it, [S·H, K, V].
Tensor per_head(const Tensor& state) {
  return state.reshape({state.size(0) * state.size(1), state.size(2), state.size(3)});
}

void linear_attention_backward(Backward& b, const AttentionTensors& in, const Tensor& state, const Segments& segments) {
  const DType dtype = in.q.dtype();
  // The kernel wants a gradient at y; where only the last state has one, it is zero.
  const Tensor grad_y = b.grad(0).defined() ? b.grad(0) : Tensor::zeros(b.ctx, in.v.shape(), dtype);
  const Tensor& grad_state = b.grad(1);
  std::array<Tensor, 4> g;
  const std::array<const Tensor*, 4> inputs = {&in.q, &in.k, &in.v, &state};
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (b.wants(static_cast<int>(i))) g[i] = Tensor::empty(b.ctx, inputs[i]->shape(), dtype);
  }
  dispatch_float(dtype, kWhere, [&]<class T>(T) {
    auto view = [&](const Tensor& t) { return t.defined() ? t.view<T, 3>() : View<T, 3>{}; };
    const ops::LinearAttentionGradients<T> out{.q = view(g[0]),
                                               .k = view(g[1]),
                                               .v = view(g[2]),
                                               .state = g[3].defined() ? view(per_head(g[3])) : View<T, 3>{}};
    ops::linear_attention_backward<T>(
        b.ctx, views<T>(in), segments, per_head(state).view<const T, 3>(), grad_y.view<const T, 3>(),
        grad_state.defined() ? per_head(grad_state).view<const T, 3>() : View<const T, 3>{}, out);
  });
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (g[i].defined()) b.give(static_cast<int>(i), g[i]);
  }
}

void check_arguments(const Variable& q, const Variable& k, const Variable& v, const Tensor& decay,
                     const Variable& state, const Segments& segments) {
  autograd::check_float(kWhere, "q", q);
  autograd::check_dtype(kWhere, "k", k, "q", q);
  autograd::check_dtype(kWhere, "v", v, "q", q);
  autograd::check_dtype(kWhere, "decay", decay, "q", q);
  autograd::check_dtype(kWhere, "state", state, "q", q);
  const bool heads = q.shape().rank() == 3 && v.shape().rank() == 3 && k.shape() == q.shape() &&
                     v.size(0) == q.size(0) && v.size(1) == q.size(1);
  STEPWELL_CHECK(heads, kWhere,
                 "q " + q.shape().to_string() + ", k " + k.shape().to_string() + " and v " + v.shape().to_string() +
                     ", expected q, k [L, H, K] and v [L, H, V]");
  STEPWELL_CHECK(decay.shape() == Shape({q.size(1)}), kWhere,
                 "decay " + decay.shape().to_string() + " for q " + q.shape().to_string() + ", expected [H]");
  autograd::check_shape(kWhere, "state", state.value(), {segments.count(), q.size(1), q.size(2), v.size(2)});
  autograd::check_tokens(kWhere, q, segments);
}

}  // namespace

std::pair<Variable, Variable> linear_attention(Context& ctx, const Variable& q, const Variable& k, const Variable& v,
                                               const Tensor& decay, double scale, Variable state,
                                               const Segments& segments) {
  check_arguments(q, k, v, decay, state, segments);
  const AttentionTensors tensors{q.value(), k.value(), v.value(), decay, scale};
  const bool recorded = kRecords && recording({&q, &k, &v, &state});
  const Variable incoming = recorded ? state : Variable();
  const Tensor last =
      autograd::writable_state(ctx, std::move(state), {segments.count(), q.size(1), q.size(2), v.size(2)}, q.dtype());
  const Tensor y = Tensor::empty(ctx, v.shape(), v.dtype());
  dispatch_float(q.dtype(), kWhere, [&]<class T>(T) {
    ops::linear_attention<T>(ctx, views<T>(tensors), segments, per_head(last).view<T, 3>(), y.view<T, 3>());
  });
  if (kRecords && recorded) {
    const Tensor before = incoming ? incoming.value().contiguous(ctx) : Tensor::zeros(last.shape(), q.dtype());
    const std::array<Tensor, 2> outputs = {y, last};
    const std::array<Variable, 4> sources = {q, k, v, incoming};
    std::vector<Variable> both =
        record(outputs, sources, [tensors, before, saved = autograd::SavedSegments(segments)](Backward& b) {
          linear_attention_backward(b, tensors, before, saved.get());
        });
    return {std::move(both[0]), std::move(both[1])};
  }
  return {y, last};
}

}  // namespace stepwell
