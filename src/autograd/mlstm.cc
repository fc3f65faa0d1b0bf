// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/mlstm.h"

#include <array>
#include <utility>

#include "stepwell/autograd/functions.h"

#include "autograd/arguments.h"
#include "autograd/recording.h"
#include "autograd/saved_segments.h"

namespace stepwell {

namespace {

constexpr const char* kWhere = "mlstm";

// A state as tensors: C [S, H, units, K, 16], n [S, H, K], m [S, H], each undefined where it is absent.
struct StateTensors {
  Tensor C, n, m;
};

template <class T>
ops::MlstmState<T> view_of(const StateTensors& state) {
  ops::MlstmState<T> view;
  if (state.C.defined()) {
    const Tensor C =
        state.C.reshape({state.C.size(0) * state.C.size(1), state.C.size(2), state.C.size(3), ops::kStateUnit});
    view.C = C.view<T, 4>();
  }
  if (state.n.defined()) view.n = state.n.reshape({state.n.size(0) * state.n.size(1), state.n.size(2)}).view<T, 2>();
  if (state.m.defined()) view.m = state.m.data<std::remove_const_t<T>>();
  return view;
}

// What the adjoint needs: the inputs and their options, the states before and after, and what the forward pass gave.
struct MlstmSaved {
  Tensor q, k, v, i, f;
  double scale;
  ops::InputGate input_gate;
  bool normalise;
  double eps;
};

template <class T>
ops::MlstmInputs<T> views(const MlstmSaved& t) {
  return {.q = t.q.view<const T, 3>(),
          .k = t.k.view<const T, 3>(),
          .v = t.v.view<const T, 3>(),
          .i = t.i.view<const T, 2>(),
          .f = t.f.view<const T, 2>(),
          .scale = static_cast<T>(t.scale),
          .input_gate = t.input_gate,
          .normalise = t.normalise,
          .eps = static_cast<T>(t.eps)};
}

void mlstm_backward(Backward& b, const MlstmSaved& in, const StateTensors& before, const StateTensors& last,
                    const Tensor& h, const Tensor& checkpoints, const Segments& segments) {
  const auto arriving = [&](int i) { return b.grad(i).defined() ? b.grad(i).contiguous(b.ctx) : Tensor(); };
  const Tensor grad_h = arriving(0);
  const StateTensors grad_last = {arriving(1), arriving(2), arriving(3)};
  const std::array<const Tensor*, 8> like = {&in.q, &in.k, &in.v, &in.i, &in.f, &last.C, &last.n, &last.m};
  std::array<Tensor, 8> g;
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (b.wants(static_cast<int>(i))) g[i] = Tensor::empty(b.ctx, like[i]->shape(), in.q.dtype());
  }
  dispatch_float(in.q.dtype(), kWhere, [&]<class T>(T) {
    const auto rows = [&](std::size_t i) { return g[i].defined() ? g[i].view<T, 3>() : View<T, 3>{}; };
    const auto gates = [&](std::size_t i) { return g[i].defined() ? g[i].view<T, 2>() : View<T, 2>{}; };
    const ops::MlstmGradients<T> out{.q = rows(0),
                                     .k = rows(1),
                                     .v = rows(2),
                                     .i = gates(3),
                                     .f = gates(4),
                                     .state = view_of<T>({g[5], g[6], g[7]})};
    ops::mlstm_backward<T>(b.ctx, views<T>(in), segments, view_of<const T>(before), checkpoints.view<const T, 4>(),
                           h.view<const T, 3>(), view_of<const T>(last),
                           grad_h.defined() ? grad_h.view<const T, 3>() : View<const T, 3>{},
                           view_of<const T>(grad_last), out);
  });
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (g[i].defined()) b.give(static_cast<int>(i), g[i]);
  }
}

void check_arguments(const MlstmArguments& in, const MlstmVariables& state, const Segments& segments) {
  autograd::check_float(kWhere, "q", in.q);
  for (const auto& [name, x] : {std::pair{"k", &in.k}, {"v", &in.v}, {"i", &in.i}, {"f", &in.f}}) {
    autograd::check_float(kWhere, name, *x);
    autograd::check_dtype(kWhere, name, *x, "q", in.q);
  }
  const bool heads = in.q.shape().rank() == 3 && in.v.shape().rank() == 3 && in.k.shape() == in.q.shape() &&
                     in.v.size(0) == in.q.size(0) && in.v.size(1) == in.q.size(1) && in.q.size(1) >= 1 &&
                     in.q.size(2) >= 1 && in.v.size(2) >= 1;
  STEPWELL_CHECK(heads, kWhere,
                 "q " + in.q.shape().to_string() + ", k " + in.k.shape().to_string() + " and v " +
                     in.v.shape().to_string() + ", expected q, k [L, H, K] and v [L, H, V] with H, K, V of at least 1");
  const std::int64_t S = segments.count(), H = in.q.size(1), K = in.q.size(2);
  autograd::check_shape(kWhere, "i", in.i.value(), {in.q.size(0), H});
  autograd::check_shape(kWhere, "f", in.f.value(), {in.q.size(0), H});
  STEPWELL_CHECK(in.normalise || in.input_gate == ops::InputGate::Sigmoid, kWhere,
                 "an exponential input gate without normaliser, expected a sigmoid one");
  STEPWELL_CHECK(in.eps >= 0, kWhere, "eps = " + std::to_string(in.eps) + ", expected ≥ 0");
  const bool all = state.C && state.n && state.m, none = !state.C && !state.n && !state.m;
  STEPWELL_CHECK(all || none, kWhere, "part of a state, expected C, n and m or none of them");
  for (const auto& [name, x] : {std::pair{"C", &state.C}, {"n", &state.n}, {"m", &state.m}}) {
    autograd::check_dtype(kWhere, name, *x, "q", in.q);
  }
  autograd::check_shape(kWhere, "C", state.C.value(), {S, H, ops::state_units(in.v.size(2)), K, ops::kStateUnit});
  autograd::check_shape(kWhere, "n", state.n.value(), {S, H, K});
  autograd::check_shape(kWhere, "m", state.m.value(), {S, H});
  autograd::check_tokens(kWhere, in.q, segments);
}

// Last dimension contiguous, as the kernels want rows.
Tensor with_rows(Context& ctx, const Variable& x) {
  const Tensor& t = x.value();
  return t.size(-1) <= 1 || t.stride(-1) == 1 ? t : t.contiguous(ctx);
}

Tensor contiguous(Context& ctx, const Variable& x) { return x ? x.value().contiguous(ctx) : Tensor(); }

}  // namespace

std::pair<Variable, MlstmVariables> mlstm(Context& ctx, const MlstmArguments& in, MlstmVariables state,
                                          const Segments& segments) {
  check_arguments(in, state, segments);
  const std::int64_t S = segments.count(), H = in.q.size(1), K = in.q.size(2), units = ops::state_units(in.v.size(2));
  const DType dtype = in.q.dtype();
  const MlstmSaved tensors{with_rows(ctx, in.q), with_rows(ctx, in.k), with_rows(ctx, in.v),
                           in.i.value(),         in.f.value(),         in.scale,
                           in.input_gate,        in.normalise,         in.eps};
  const bool recorded = kRecords && recording({&in.q, &in.k, &in.v, &in.i, &in.f, &state.C, &state.n, &state.m});
  const MlstmVariables before = recorded ? state : MlstmVariables();
  const StateTensors last = {
      autograd::writable_state(ctx, std::move(state.C), {S, H, units, K, ops::kStateUnit}, dtype),
      autograd::writable_state(ctx, std::move(state.n), {S, H, K}, dtype),
      autograd::writable_state(ctx, std::move(state.m), {S, H}, dtype)};
  const Tensor h = Tensor::empty(ctx, in.v.shape(), dtype);
  Tensor checkpoints;
  if (recorded) checkpoints = Tensor::empty({ops::checkpoint_rows(segments, H), units, K, ops::kStateUnit}, dtype);
  dispatch_float(dtype, kWhere, [&]<class T>(T) {
    ops::MlstmOptions<T> options{.form = in.form, .chunk = in.chunk, .checkpoints = {}};
    if (checkpoints.defined()) options.checkpoints = checkpoints.view<T, 4>();
    ops::mlstm<T>(ctx, views<T>(tensors), segments, view_of<T>(last), h.view<T, 3>(), options);
  });
  if (kRecords && recorded) {
    const std::array<Tensor, 4> outputs = {h, last.C, last.n, last.m};
    const std::array<Variable, 8> sources = {in.q, in.k, in.v, in.i, in.f, before.C, before.n, before.m};
    const StateTensors start = {contiguous(ctx, before.C), contiguous(ctx, before.n), contiguous(ctx, before.m)};
    std::vector<Variable> all =
        record(outputs, sources,
               [tensors, start, last, h, checkpoints, saved = autograd::SavedSegments(segments)](Backward& b) {
                 mlstm_backward(b, tensors, start, last, h, checkpoints, saved.get());
               });
    return std::pair(std::move(all[0]), MlstmVariables{std::move(all[1]), std::move(all[2]), std::move(all[3])});
  }
  return {h, {last.C, last.n, last.m}};
}

}  // namespace stepwell
