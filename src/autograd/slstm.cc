// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/slstm.h"

#include <array>
#include <utility>

#include "stepwell/autograd/functions.h"

#include "autograd/arguments.h"
#include "autograd/recording.h"
#include "autograd/saved_segments.h"

namespace stepwell {

namespace {

constexpr const char* kWhere = "slstm";

// What the adjoint needs: the inputs, the state before, and what the forward pass gave.
struct SlstmSaved {
  Tensor x, R, bias, before, y, trace;
  Shape state_shape;
  autograd::SavedSegments segments;
};

template <class T>
ops::SlstmInputs<T> views(const Tensor& x, const Tensor& R, const Tensor& bias) {
  return {x.view<const T, 2>(), R.view<const T, 3>(), bias.defined() ? bias.data<T>() : nullptr};
}

void slstm_backward(Backward& b, const SlstmSaved& saved) {
  const DType dtype = saved.x.dtype();
  const Tensor grad_y = b.grad(0).defined() ? b.grad(0).contiguous(b.ctx) : Tensor();
  const Tensor grad_last = b.grad(1).defined() ? b.grad(1).contiguous(b.ctx) : Tensor();
  const std::array<const Shape*, 4> shapes = {&saved.x.shape(), &saved.R.shape(), &saved.bias.shape(),
                                              &saved.state_shape};
  std::array<Tensor, 4> g;
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (b.wants(static_cast<int>(i))) g[i] = Tensor::empty(b.ctx, *shapes[i], dtype);
  }
  dispatch_float(dtype, kWhere, [&]<class T>(T) {
    ops::SlstmGradients<T> out;
    if (g[0].defined()) out.x = g[0].view<T, 2>();
    if (g[1].defined()) out.R = g[1].view<T, 3>();
    if (g[2].defined()) out.bias = g[2].data<T>();
    if (g[3].defined()) out.state = g[3].view<T, 3>();
    const auto state = [](const Tensor& t) { return t.defined() ? t.view<const T, 3>() : View<const T, 3>{}; };
    ops::slstm_backward<T>(b.ctx, views<T>(saved.x, saved.R, saved.bias), saved.segments.get(), state(saved.before),
                           saved.y.view<const T, 2>(), saved.trace.view<const T, 3>(),
                           grad_y.defined() ? grad_y.view<const T, 2>() : View<const T, 2>{}, state(grad_last), out);
  });
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (g[i].defined()) b.give(static_cast<int>(i), g[i]);
  }
}

void check_arguments(const Variable& x, const Variable& R, const Variable& bias, const Variable& state,
                     const Segments& segments) {
  autograd::check_float(kWhere, "x", x);
  autograd::check_float(kWhere, "R", R);
  autograd::check_dtype(kWhere, "R", R, "x", x);
  autograd::check_dtype(kWhere, "bias", bias, "x", x);
  autograd::check_dtype(kWhere, "state", state, "x", x);
  const bool heads = R.shape().rank() == 3 && R.size(0) >= 1 && R.size(2) >= 1 && R.size(1) == 4 * R.size(2);
  STEPWELL_CHECK(heads, kWhere, "R " + R.shape().to_string() + ", expected [H, 4·D, D] with H and D of at least 1");
  const std::int64_t width = R.size(0) * R.size(2);
  STEPWELL_CHECK(x.shape().rank() == 2 && x.size(1) == 4 * width, kWhere,
                 "x " + x.shape().to_string() + " for R " + R.shape().to_string() + ", expected [L, " +
                     std::to_string(4 * width) + "]");
  autograd::check_shape(kWhere, "bias", bias.value(), {4 * width});
  autograd::check_shape(kWhere, "state", state.value(), {segments.count(), 4, width});
  autograd::check_tokens(kWhere, x, segments);
}

}  // namespace

std::pair<Variable, Variable> slstm(Context& ctx, const Variable& x, const Variable& R, const Variable& bias,
                                    Variable state, const Segments& segments) {
  check_arguments(x, R, bias, state, segments);
  const std::int64_t H = R.size(0), D = R.size(2), L = x.size(0);
  const Tensor rows = x.value().contiguous(ctx), kernel = R.value().contiguous(ctx),
               offsets = bias ? bias.value().contiguous(ctx) : Tensor();
  const bool recorded = kRecords && recording({&x, &R, &bias, &state});
  const Variable incoming = recorded ? state : Variable();
  const Tensor last = autograd::writable_state(ctx, std::move(state), {segments.count(), 4, H * D}, x.dtype());
  const Tensor y = Tensor::empty(ctx, {L, H * D}, x.dtype());
  const Tensor trace = recorded ? Tensor::empty(ctx, {H, L, ops::kSlstmTrace * D}, x.dtype()) : Tensor();
  dispatch_float(x.dtype(), kWhere, [&]<class T>(T) {
    ops::slstm<T>(ctx, views<T>(rows, kernel, offsets), segments, last.view<T, 3>(), y.view<T, 2>(),
                  trace.defined() ? trace.view<T, 3>() : View<T, 3>{});
  });
  if (kRecords && recorded) {
    const SlstmSaved saved{rows, kernel, offsets,      incoming ? incoming.value().contiguous(ctx) : Tensor(),
                           y,    trace,  last.shape(), autograd::SavedSegments(segments)};
    const std::array<Tensor, 2> outputs = {y, last};
    const std::array<Variable, 4> sources = {x, R, bias, incoming};
    std::vector<Variable> both = record(outputs, sources, [saved](Backward& b) { slstm_backward(b, saved); });
    return {std::move(both[0]), std::move(both[1])};
  }
  return {y, last};
}

}  // namespace stepwell
