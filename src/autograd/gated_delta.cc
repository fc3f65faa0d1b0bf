// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/gated_delta.h"

#include <array>
#include <string>
#include <utility>

#include "stepwell/autograd/functions.h"

#include "autograd/arguments.h"
#include "autograd/recording.h"
#include "autograd/saved_segments.h"

namespace stepwell {

namespace {

constexpr const char* kWhere = "gated_delta";

// The tensors of a call, in the order of the recorded inputs, and its options.
struct DeltaTensors {
  Tensor q, k, v, g, b, w, A_log, dt_bias;
  double scale;
  bool l2norm;
  ops::DecayGate gate;
  double lower_bound;
};

template <class T>
ops::GatedDeltaInputs<T> views(const DeltaTensors& t) {
  const auto view = [](const Tensor& x) { return x.defined() ? x.view<const T, 3>() : View<const T, 3>{}; };
  return {.q = view(t.q),
          .k = view(t.k),
          .v = view(t.v),
          .g = view(t.g),
          .b = view(t.b),
          .w = view(t.w),
          .scale = static_cast<T>(t.scale),
          .l2norm = t.l2norm,
          .gate = t.gate,
          .A_log = t.A_log.defined() ? t.A_log.data<T>() : nullptr,
          .dt_bias = t.dt_bias.defined() ? t.dt_bias.data<T>() : nullptr,
          .lower_bound = static_cast<T>(t.lower_bound)};
}

// A state [S, HV, units, K, 16] as the kernel takes it, [S·HV, units, K, 16]; an absent one as an absent view.
template <class T>
View<T, 4> per_head(const Tensor& state) {
  if (!state.defined()) return {};
  return state.reshape({state.size(0) * state.size(1), state.size(2), state.size(3), state.size(4)})
      .template view<T, 4>();
}

// Last dimension contiguous, as the kernels want rows; undefined passes.
Tensor with_rows(Context& ctx, const Tensor& t) {
  return !t.defined() || t.size(-1) <= 1 || t.stride(-1) == 1 ? t : t.contiguous(ctx);
}

void gated_delta_backward(Backward& b, const DeltaTensors& in, const Tensor& state, const Tensor& checkpoints,
                          const Shape& state_shape, const Segments& segments) {
  const Tensor grad_o = with_rows(b.ctx, b.grad(0));
  const Tensor grad_state = b.grad(1).defined() ? b.grad(1).contiguous(b.ctx) : Tensor();
  const std::array<const Shape*, 9> shapes = {&in.q.shape(),     &in.k.shape(),       &in.v.shape(),
                                              &in.g.shape(),     &in.b.shape(),       &in.w.shape(),
                                              &in.A_log.shape(), &in.dt_bias.shape(), &state_shape};
  std::array<Tensor, 9> g;
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (b.wants(static_cast<int>(i))) g[i] = Tensor::empty(b.ctx, *shapes[i], in.q.dtype());
  }
  dispatch_float(in.q.dtype(), kWhere, [&]<class T>(T) {
    auto view = [&](std::size_t i) { return g[i].defined() ? g[i].view<T, 3>() : View<T, 3>{}; };
    auto vector = [&](std::size_t i) { return g[i].defined() ? g[i].data<T>() : nullptr; };
    const ops::GatedDeltaGradients<T> out{.q = view(0),
                                          .k = view(1),
                                          .v = view(2),
                                          .g = view(3),
                                          .b = view(4),
                                          .w = view(5),
                                          .A_log = vector(6),
                                          .dt_bias = vector(7),
                                          .state = per_head<T>(g[8])};
    ops::gated_delta_backward<T>(
        b.ctx, views<T>(in), segments, per_head<const T>(state), checkpoints.view<const T, 4>(),
        grad_o.defined() ? grad_o.view<const T, 3>() : View<const T, 3>{}, per_head<const T>(grad_state), out);
  });
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (g[i].defined()) b.give(static_cast<int>(i), g[i]);
  }
}

// A gate: undefined, or [L, heads, 1 or channels] with as many heads as the keys have or as the values have.
void check_gate(const char* name, const Variable& gate, const GatedDeltaArguments& in, std::int64_t channels,
                bool of_values) {
  if (!gate) return;
  autograd::check_dtype(kWhere, name, gate, "q", in.q);
  const Shape& shape = gate.shape();
  const std::int64_t H = in.q.size(1), HV = in.v.size(1);
  const bool fits = shape.rank() == 3 && shape[0] == in.q.size(0) &&
                    (shape[1] == HV || (!of_values && shape[1] == H)) && (shape[2] == 1 || shape[2] == channels);
  STEPWELL_CHECK(fits, kWhere,
                 std::string(name) + " is " + shape.to_string() + " for q " + in.q.shape().to_string() + " and v " +
                     in.v.shape().to_string() + "; expected [L, " + (of_values ? "HV" : "H or HV") + ", 1 or " +
                     (of_values ? "V]" : "K]"));
}

void check_arguments(const GatedDeltaArguments& in, const Variable& state, const Shape& state_shape,
                     const Segments& segments) {
  autograd::check_float(kWhere, "q", in.q);
  autograd::check_float(kWhere, "k", in.k);
  autograd::check_float(kWhere, "v", in.v);
  autograd::check_dtype(kWhere, "k", in.k, "q", in.q);
  autograd::check_dtype(kWhere, "v", in.v, "q", in.q);
  const bool heads = in.q.shape().rank() == 3 && in.v.shape().rank() == 3 && in.k.shape() == in.q.shape() &&
                     in.v.size(0) == in.q.size(0) && in.q.size(1) >= 1 && in.q.size(2) >= 1 && in.v.size(2) >= 1;
  STEPWELL_CHECK(heads, kWhere,
                 "q " + in.q.shape().to_string() + ", k " + in.k.shape().to_string() + " and v " +
                     in.v.shape().to_string() +
                     ", expected q, k [L, H, K] and v [L, HV, V] with H, K, V of at least 1");
  STEPWELL_CHECK(in.v.size(1) >= 1 && in.v.size(1) % in.q.size(1) == 0, kWhere,
                 std::to_string(in.v.size(1)) + " value heads for " + std::to_string(in.q.size(1)) +
                     " key heads, expected a multiple");
  check_gate("g", in.g, in, in.q.size(2), false);
  check_gate("b", in.b, in, in.q.size(2), false);
  check_gate("w", in.w, in, in.v.size(2), true);
  STEPWELL_CHECK(in.g || in.gate == ops::DecayGate::Given, kWhere, "a decay gate without g, expected g");
  STEPWELL_CHECK(in.gate != ops::DecayGate::Given || (!in.A_log && !in.dt_bias), kWhere,
                 "A_log or dt_bias with g given as log decay; expected them with a softplus or bounded gate only");
  STEPWELL_CHECK(in.gate != ops::DecayGate::Bounded || in.lower_bound < 0, kWhere,
                 "lower_bound = " + std::to_string(in.lower_bound) + ", expected less than 0");
  if (in.gate != ops::DecayGate::Given) {
    autograd::check_dtype(kWhere, "A_log", in.A_log, "q", in.q);
    autograd::check_dtype(kWhere, "dt_bias", in.dt_bias, "q", in.q);
    autograd::check_shape(kWhere, "A_log", in.A_log.value(), {in.g.size(1)});
    autograd::check_shape(kWhere, "dt_bias", in.dt_bias.value(), {in.g.size(1) * in.g.size(2)});
  }
  STEPWELL_CHECK(in.chunk >= 0, kWhere,
                 "chunk = " + std::to_string(in.chunk) + ", expected at least 1, or 0 for what is fastest");
  autograd::check_dtype(kWhere, "state", state, "q", in.q);
  autograd::check_shape(kWhere, "state", state.value(), state_shape);
  autograd::check_tokens(kWhere, in.q, segments);
}

}  // namespace

std::pair<Variable, Variable> gated_delta(Context& ctx, const GatedDeltaArguments& in, Variable state,
                                          const Segments& segments) {
  const std::int64_t HV = in.v ? in.v.size(1) : 0, units = in.v ? ops::state_units(in.v.size(-1)) : 0;
  const Shape state_shape = {segments.count(), HV, units, in.q ? in.q.size(-1) : 0, ops::kStateUnit};
  check_arguments(in, state, state_shape, segments);
  const auto rows = [&](const Variable& v) { return with_rows(ctx, v.value()); };
  const DeltaTensors tensors{rows(in.q),       rows(in.k),         rows(in.v), rows(in.g), rows(in.b), rows(in.w),
                             in.A_log.value(), in.dt_bias.value(), in.scale,   in.l2norm,  in.gate,    in.lower_bound};
  const bool recorded =
      kRecords && recording({&in.q, &in.k, &in.v, &in.g, &in.b, &in.w, &in.A_log, &in.dt_bias, &state});
  const Variable before = recorded ? state : Variable();
  const Tensor last = autograd::writable_state(ctx, std::move(state), state_shape, in.q.dtype());
  const Tensor o = Tensor::empty(ctx, in.v.shape(), in.q.dtype());
  Tensor checkpoints;
  if (recorded) {
    checkpoints =
        Tensor::empty({ops::checkpoint_rows(segments, HV), units, in.q.size(2), ops::kStateUnit}, in.q.dtype());
  }
  dispatch_float(in.q.dtype(), kWhere, [&]<class T>(T) {
    ops::GatedDeltaOptions<T> options;
    options.form = in.form;
    options.chunk = in.chunk;
    if (checkpoints.defined()) options.checkpoints = checkpoints.view<T, 4>();
    ops::gated_delta<T>(ctx, views<T>(tensors), segments, per_head<T>(last), o.view<T, 3>(), options);
  });
  if (kRecords && recorded) {
    const std::array<Tensor, 2> outputs = {o, last};
    const std::array<Variable, 9> sources = {in.q, in.k, in.v, in.g, in.b, in.w, in.A_log, in.dt_bias, before};
    std::vector<Variable> both =
        record(outputs, sources,
               [tensors, before = before ? before.value().contiguous(ctx) : Tensor(), checkpoints, state_shape,
                saved = autograd::SavedSegments(segments)](Backward& b) {
                 gated_delta_backward(b, tensors, before, checkpoints, state_shape, saved.get());
               });
    return {std::move(both[0]), std::move(both[1])};
  }
  return {o, last};
}

namespace {

Tensor packed(Context& ctx, const Tensor& state) {
  const Tensor from = state.contiguous(ctx);
  const std::int64_t S = state.size(0), HV = state.size(1), K = state.size(2), V = state.size(3);
  const Tensor to = Tensor::empty(ctx, {S, HV, ops::state_units(V), K, ops::kStateUnit}, state.dtype());
  dispatch_float(state.dtype(), kWhere, [&]<class T>(T) {
    ops::pack_state<T>(ctx, from.reshape({S * HV, K, V}).view<const T, 3>(), per_head<T>(to));
  });
  return to;
}

Tensor unpacked(Context& ctx, const Tensor& state, std::int64_t V) {
  const Tensor from = state.contiguous(ctx);
  const std::int64_t S = state.size(0), HV = state.size(1), K = state.size(3);
  const Tensor to = Tensor::empty(ctx, {S, HV, K, V}, state.dtype());
  dispatch_float(state.dtype(), kWhere, [&]<class T>(T) {
    ops::unpack_state<T>(ctx, per_head<const T>(from), to.reshape({S * HV, K, V}).view<T, 3>());
  });
  return to;
}

}  // namespace

Variable pack_state(Context& ctx, const Variable& state) {
  autograd::check_float("pack_state", "state", state);
  STEPWELL_CHECK(state.shape().rank() == 4, "pack_state",
                 "a state " + state.shape().to_string() + ", expected [S, HV, K, V]");
  const std::array<Tensor, 1> outputs = {packed(ctx, state.value())};
  if (!(kRecords && recording({&state}))) return outputs[0];
  const std::array<Variable, 1> sources = {state};
  return record(outputs, sources, [V = state.size(3)](Backward& b) { b.give(0, unpacked(b.ctx, b.grad(0), V)); })[0];
}

Variable unpack_state(Context& ctx, const Variable& state, std::int64_t V) {
  autograd::check_float("unpack_state", "state", state);
  const Shape& shape = state.shape();
  STEPWELL_CHECK(
      shape.rank() == 5 && shape[4] == ops::kStateUnit && shape[2] == ops::state_units(V), "unpack_state",
      "a state " + shape.to_string() + " of " + std::to_string(V) + " value columns, expected [S, HV, ⌈V/16⌉, K, 16]");
  const std::array<Tensor, 1> outputs = {unpacked(ctx, state.value(), V)};
  if (!(kRecords && recording({&state}))) return outputs[0];
  const std::array<Variable, 1> sources = {state};
  return record(outputs, sources, [](Backward& b) { b.give(0, packed(b.ctx, b.grad(0))); })[0];
}

}  // namespace stepwell
