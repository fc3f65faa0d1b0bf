// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "stepwell/ops/selective_scan.h"
#include "stepwell/ops/short_conv.h"

#include "bench/measure/limits_simd.h"
#include "bench/ops/cases.h"

namespace stepwell::bench {

namespace {

constexpr std::int64_t kChannels = 1536, kStates = 16, kTaps = 4;

// A scan with every option on: step bias, softplus, skip connection, gate; one sequence of `time` tokens.
struct Scan {
  explicit Scan(std::int64_t time)
      : segments(Segments::uniform(1, time)),
        u(spread({time, kChannels}, -1, 1)),
        dt(spread({time, kChannels}, -6, 0)),
        z(spread({time, kChannels}, -2, 2)),
        A(spread({kChannels, kStates}, -16, -1)),
        B(spread({time, 1, kStates}, -1, 1)),
        C(spread({time, 1, kStates}, -1, 1)),
        D(spread({kChannels}, 0, 2)),
        dt_bias(spread({kChannels}, -1, 1)),
        h(Tensor::zeros({1, kStates, kChannels})),
        y(Tensor::zeros({time, kChannels})),
        grad_y(spread({time, kChannels}, -1, 1)) {
    in.u = u.view<const float, 2>();
    in.dt = dt.view<const float, 2>();
    in.z = z.view<const float, 2>();
    in.A = A.view<const float, 2>();
    in.B = B.view<const float, 3>();
    in.C = C.view<const float, 3>();
    in.D = D.data<float>();
    in.dt_bias = dt_bias.data<float>();
    for (auto [gradient, input] : {std::pair{&grad_u, &u},
                                   {&grad_dt, &dt},
                                   {&grad_z, &z},
                                   {&grad_A, &A},
                                   {&grad_B, &B},
                                   {&grad_C, &C},
                                   {&grad_D, &D},
                                   {&grad_bias, &dt_bias},
                                   {&grad_h, &h}}) {
      *gradient = Tensor::zeros(input->shape());
    }
    out.u = grad_u.view<float, 2>();
    out.dt = grad_dt.view<float, 2>();
    out.z = grad_z.view<float, 2>();
    out.A = grad_A.view<float, 2>();
    out.B = grad_B.view<float, 3>();
    out.C = grad_C.view<float, 3>();
    out.D = grad_D.data<float>();
    out.dt_bias = grad_bias.data<float>();
    out.h = grad_h.view<float, 3>();
  }

  void forward(Context& ctx, float* kept = nullptr) {
    h.fill(0);
    ops::selective_scan<float>(ctx, in, segments, h.view<float, 3>(), y.view<float, 2>(), {}, kept);
  }
  // As in training: the forward pass leaves checkpoints for the backward pass.
  void forward_and_backward(Context& ctx) {
    if (!checkpoints.defined()) checkpoints = Tensor::zeros({ops::selective_scan_checkpoints(in, segments)});
    forward(ctx, checkpoints.data<float>());
    ops::selective_scan_backward<float>(ctx, in, segments, {}, grad_y.view<const float, 2>(), {}, out,
                                        checkpoints.data<float>());
  }

  Segments segments;
  Tensor u, dt, z, A, B, C, D, dt_bias, h, y, grad_y, checkpoints;
  Tensor grad_u, grad_dt, grad_z, grad_A, grad_B, grad_C, grad_D, grad_bias, grad_h;
  ops::SelectiveScanInputs<float> in;
  ops::SelectiveScanGradients<float> out;
};

Workload scan_forward(std::int64_t time) {
  auto scan = std::make_shared<Scan>(time);
  Workload work;
  work.unit = "tok/s";
  work.units = static_cast<double>(time);
  // Nine operations for a vector of states and token: the product under the exponential, the exponential, decay and
  // input, and the read-out.
  constexpr double kSlots = 9;
  work.cost = work.units * kChannels * kStates / lanes_f32() * kSlots;
  work.run = [scan](Context& ctx) { scan->forward(ctx); };
  return work;
}

Workload scan_training(std::int64_t time) {
  auto scan = std::make_shared<Scan>(time);
  Workload work;
  work.unit = "tok/s";
  work.units = static_cast<double>(time);
  work.bound = Bound::Yardstick;
  work.yardstick_name = "its forward";
  work.yardstick = [scan](Context& ctx) { scan->forward(ctx); };
  work.run = [scan](Context& ctx) { scan->forward_and_backward(ctx); };
  return work;
}

Workload short_conv(std::int64_t time) {
  struct Buffers {
    Tensor x, weight, bias, state, y;
  };
  auto buffers = std::make_shared<Buffers>(Buffers{spread({time, kChannels}, -1, 1), spread({kChannels, kTaps}, -1, 1),
                                                   spread({kChannels}, -1, 1), Tensor::zeros({1, kTaps, kChannels}),
                                                   Tensor::zeros({time, kChannels})});
  Workload work;
  work.unit = "tok/s";
  work.units = static_cast<double>(time);
  work.bound = Bound::L2;
  work.cost = work.units * kChannels * 4;
  work.run = [buffers, time](Context& ctx) {
    ops::ShortConvInputs<float> in;
    in.x = buffers->x.view<const float, 2>();
    in.weight = buffers->weight.view<const float, 2>();
    in.bias = buffers->bias.data<float>();
    ops::short_conv<float>(ctx, in, Segments::uniform(1, time), buffers->state.view<float, 3>(),
                           buffers->y.view<float, 2>());
  };
  return work;
}

}  // namespace

std::vector<Case> mamba_cases() {
  std::vector<Case> cases;
  for (const std::int64_t time : {256, 1024, 4096}) {
    const std::string shape = "D1536 N16 T" + std::to_string(time);
    cases.push_back({"selective_scan", shape + " forward", [=] { return scan_forward(time); }});
    cases.push_back({"selective_scan", shape + " forward+backward", [=] { return scan_training(time); }});
  }
  cases.push_back({"short_conv", "D1536 K4 T1024", [] { return short_conv(1024); }});
  return cases;
}

}  // namespace stepwell::bench
