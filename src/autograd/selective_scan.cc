// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/selective_scan.h"

#include <array>
#include <utility>

#include "stepwell/autograd/functions.h"

#include "autograd/arguments.h"
#include "autograd/recording.h"
#include "autograd/saved_segments.h"

namespace stepwell {

namespace {

constexpr const char* kWhere = "selective_scan";

// The tensors of a call, in the order of the recorded inputs.
struct ScanTensors {
  Tensor u, dt, A, B, C, z, D, dt_bias;
  bool softplus, constant_bc;
  ops::Discretisation discretisation;
};

// B or C as the kernel takes them: [L, G, N] or [D, 1, N].
Tensor with_groups(const Tensor& t) { return t.rank() == 2 ? t.reshape({t.size(0), 1, t.size(1)}) : t; }

template <class T>
ops::SelectiveScanInputs<T> views(const ScanTensors& t) {
  return {.u = t.u.view<const T, 2>(),
          .dt = t.dt.view<const T, 2>(),
          .A = t.A.view<const T, 2>(),
          .B = with_groups(t.B).view<const T, 3>(),
          .C = with_groups(t.C).view<const T, 3>(),
          .z = t.z.defined() ? t.z.view<const T, 2>() : View<const T, 2>{},
          .D = t.D.defined() ? t.D.data<T>() : nullptr,
          .dt_bias = t.dt_bias.defined() ? t.dt_bias.data<T>() : nullptr,
          .softplus = t.softplus,
          .constant_bc = t.constant_bc,
          .discretisation = t.discretisation};
}

void selective_scan_backward(Backward& b, const ScanTensors& in, const Tensor& checkpoints, const Shape& state_shape,
                             const Segments& segments) {
  const DType dtype = in.u.dtype();
  // The kernel wants a gradient at y; where only the last state has one, it is zero.
  const Tensor grad_y = b.grad(0).defined() ? b.grad(0) : Tensor::zeros(b.ctx, in.u.shape(), dtype);
  const Tensor& grad_h = b.grad(1);
  const std::array<const Shape*, 9> shapes = {&in.u.shape(), &in.dt.shape(),      &in.A.shape(),
                                              &in.B.shape(), &in.C.shape(),       &in.z.shape(),
                                              &in.D.shape(), &in.dt_bias.shape(), &state_shape};
  std::array<Tensor, 9> g;
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (b.wants(static_cast<int>(i))) g[i] = Tensor::empty(b.ctx, *shapes[i], dtype);
  }
  dispatch_float(dtype, kWhere, [&]<class T>(T) {
    auto rows = [&](std::size_t i) { return g[i].defined() ? g[i].view<T, 2>() : View<T, 2>{}; };
    auto groups = [&](std::size_t i) { return g[i].defined() ? with_groups(g[i]).view<T, 3>() : View<T, 3>{}; };
    auto vector = [&](std::size_t i) { return g[i].defined() ? g[i].data<T>() : nullptr; };
    const ops::SelectiveScanGradients<T> out{.u = rows(0),
                                             .dt = rows(1),
                                             .A = rows(2),
                                             .B = groups(3),
                                             .C = groups(4),
                                             .z = rows(5),
                                             .D = vector(6),
                                             .dt_bias = vector(7),
                                             .h = groups(8)};
    ops::selective_scan_backward<T>(b.ctx, views<T>(in), segments, {}, grad_y.view<const T, 2>(),
                                    grad_h.defined() ? grad_h.view<const T, 3>() : View<const T, 3>{}, out,
                                    checkpoints.data<T>());
  });
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (g[i].defined()) b.give(static_cast<int>(i), g[i]);
  }
}

// B and C: [L, N] or [L, G, N] with D a multiple of G, or [D, N] with constant_bc.
void check_input_map(const char* name, const Variable& v, const SelectiveScanArguments& in) {
  const std::int64_t L = in.u.size(0), D = in.u.size(1), N = in.A.size(1);
  if (in.constant_bc) return autograd::check_shape(kWhere, name, v.value(), {D, N});
  const int rank = v.shape().rank();
  const bool rows = (rank == 2 || rank == 3) && v.size(0) == L && v.size(-1) == N;
  STEPWELL_CHECK(rows, kWhere,
                 std::string(name) + " is " + v.shape().to_string() +
                     ", expected [L, N] or [L, G, N] with L = " + std::to_string(L) + " and N = " + std::to_string(N));
  STEPWELL_CHECK(rank == 2 || (v.size(1) >= 1 && D % v.size(1) == 0), kWhere,
                 std::string(name) + " is " + v.shape().to_string() + " for " + std::to_string(D) +
                     " channels; expected a number of groups that divides the channels");
}

void check_arguments(const SelectiveScanArguments& in, const Variable& h, const Segments& segments) {
  autograd::check_float(kWhere, "u", in.u);
  using Named = std::pair<const char*, const Variable*>;
  for (const auto& [name, v] : std::array<Named, 4>{{{"dt", &in.dt}, {"A", &in.A}, {"B", &in.B}, {"C", &in.C}}}) {
    autograd::check_float(kWhere, name, *v);
    autograd::check_dtype(kWhere, name, *v, "u", in.u);
  }
  for (const auto& [name, v] :
       std::array<Named, 4>{{{"z", &in.z}, {"D", &in.D}, {"dt_bias", &in.dt_bias}, {"h", &h}}}) {
    autograd::check_dtype(kWhere, name, *v, "u", in.u);
  }
  STEPWELL_CHECK(
      in.u.shape().rank() == 2 && in.A.shape().rank() == 2 && in.A.size(0) == in.u.size(1), kWhere,
      "u " + in.u.shape().to_string() + " and A " + in.A.shape().to_string() + ", expected u [L, D] and A [D, N]");
  const std::int64_t D = in.u.size(1), N = in.A.size(1);
  autograd::check_shape(kWhere, "dt", in.dt.value(), in.u.shape());
  autograd::check_shape(kWhere, "z", in.z.value(), in.u.shape());
  autograd::check_shape(kWhere, "D", in.D.value(), {D});
  autograd::check_shape(kWhere, "dt_bias", in.dt_bias.value(), {D});
  autograd::check_shape(kWhere, "h", h.value(), {segments.count(), N, D});
  check_input_map("B", in.B, in);
  check_input_map("C", in.C, in);
  STEPWELL_CHECK(
      with_groups(in.B.value()).size(1) == with_groups(in.C.value()).size(1), kWhere,
      "B " + in.B.shape().to_string() + " and C " + in.C.shape().to_string() + ", expected equally many groups");
  autograd::check_tokens(kWhere, in.u, segments);
}

}  // namespace

std::pair<Variable, Variable> selective_scan(Context& ctx, const SelectiveScanArguments& in, Variable h,
                                             const Segments& segments) {
  check_arguments(in, h, segments);
  const ScanTensors tensors{in.u.value(), in.dt.value(),  in.A.value(),     in.B.value(),
                            in.C.value(), in.z.value(),   in.D.value(),     in.dt_bias.value(),
                            in.softplus,  in.constant_bc, in.discretisation};
  const bool recorded = kRecords && recording({&in.u, &in.dt, &in.A, &in.B, &in.C, &in.z, &in.D, &in.dt_bias, &h});
  const Variable before = recorded ? h : Variable();
  const Shape state_shape = {segments.count(), in.A.size(1), in.u.size(1)};
  const Tensor last = autograd::writable_state(ctx, std::move(h), state_shape, in.u.dtype());
  const Tensor y = Tensor::empty(ctx, in.u.shape(), in.u.dtype());
  Tensor checkpoints;  // for the backward pass; they hold the initial state too
  dispatch_float(in.u.dtype(), kWhere, [&]<class T>(T) {
    const auto inputs = views<T>(tensors);
    if (recorded) checkpoints = Tensor::empty({ops::selective_scan_checkpoints(inputs, segments)}, in.u.dtype());
    ops::selective_scan<T>(ctx, inputs, segments, last.view<T, 3>(), y.view<T, 2>(), {},
                           recorded ? checkpoints.data<T>() : nullptr);
  });
  if (kRecords && recorded) {
    const std::array<Tensor, 2> outputs = {y, last};
    const std::array<Variable, 9> sources = {in.u, in.dt, in.A, in.B, in.C, in.z, in.D, in.dt_bias, before};
    std::vector<Variable> both = record(
        outputs, sources, [tensors, checkpoints, state_shape, saved = autograd::SavedSegments(segments)](Backward& b) {
          selective_scan_backward(b, tensors, checkpoints, state_shape, saved.get());
        });
    return {std::move(both[0]), std::move(both[1])};
  }
  return {y, last};
}

}  // namespace stepwell
