// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/ops/mlstm.h"
#include "stepwell/ops/slstm.h"

#include "bench/measure/limits_simd.h"
#include "bench/ops/cases.h"

namespace stepwell::bench {

namespace {

constexpr std::int64_t kHeads = 4;

// One sequence of `time` tokens through the mLSTM cell with exponential gate and normaliser, with gradients.
struct Mlstm {
  Mlstm(std::int64_t K, std::int64_t V, std::int64_t time, ops::Form form)
      : segments(Segments::uniform(1, time)),
        q(spread({time, kHeads, K}, -1, 1)),
        k(spread({time, kHeads, K}, -1, 1)),
        v(spread({time, kHeads, V}, -1, 1)),
        i(spread({time, kHeads}, -3, 3)),
        f(spread({time, kHeads}, 1, 6)),
        C(Tensor::zeros({kHeads, ops::state_units(V), K, ops::kStateUnit})),
        n(Tensor::zeros({kHeads, K})),
        m(Tensor::zeros({kHeads})),
        h(Tensor::zeros(v.shape())),
        grad_h(spread(v.shape(), -1, 1)),
        checkpoints(Tensor::zeros({ops::checkpoint_rows(segments, kHeads), ops::state_units(V), K, ops::kStateUnit})) {
    in.q = q.view<const float, 3>();
    in.k = k.view<const float, 3>();
    in.v = v.view<const float, 3>();
    in.i = i.view<const float, 2>();
    in.f = f.view<const float, 2>();
    in.scale = 1 / std::sqrt(static_cast<float>(K));
    options.form = form;
    for (auto [gradient, input] : {std::pair{&grad_q, &q}, {&grad_k, &k}, {&grad_v, &v}, {&grad_i, &i}, {&grad_f, &f}})
      *gradient = Tensor::zeros(input->shape());
    out.q = grad_q.view<float, 3>();
    out.k = grad_k.view<float, 3>();
    out.v = grad_v.view<float, 3>();
    out.i = grad_i.view<float, 2>();
    out.f = grad_f.view<float, 2>();
  }

  void forward(Context& ctx) {
    ops::mlstm<float>(ctx, in, segments, {C.view<float, 4>(), n.view<float, 2>(), m.data<float>()}, h.view<float, 3>(),
                      options);
  }
  void training(Context& ctx) {
    for (const Tensor* state : {&C, &n, &m}) state->fill(0);
    options.checkpoints = checkpoints.view<float, 4>();
    forward(ctx);
    ops::mlstm_backward<float>(ctx, in, segments, {}, checkpoints.view<const float, 4>(), h.view<const float, 3>(),
                               {C.view<const float, 4>(), n.view<const float, 2>(), m.data<const float>()},
                               grad_h.view<const float, 3>(), {}, out);
  }

  Segments segments;
  Tensor q, k, v, i, f, C, n, m, h, grad_h, checkpoints;
  Tensor grad_q, grad_k, grad_v, grad_i, grad_f;
  ops::MlstmInputs<float> in;
  ops::MlstmOptions<float> options;
  ops::MlstmGradients<float> out;
};

// The slots of a chunk of 64 tokens: two products that pass over the state, and the scores.
constexpr double kForwardSlots = 2.2, kTrainingSlots = 8;

Workload mlstm(std::int64_t K, std::int64_t V, std::int64_t time, ops::Form form, bool training) {
  auto cell = std::make_shared<Mlstm>(K, V, time, form);
  Workload work;
  work.unit = "tok/s";
  work.units = static_cast<double>(time);
  work.cost =
      work.units * static_cast<double>(kHeads * K * V) / lanes_f32() * (training ? kTrainingSlots : kForwardSlots);
  work.run = [=](Context& ctx) { training ? cell->training(ctx) : cell->forward(ctx); };
  return work;
}

// A token of a cell like that of xLSTM-7B: its state of 2 MiB comes from memory and goes back to it.
Workload mlstm_step() {
  constexpr std::int64_t K = 256, V = 512, kCells = 64;  // cells in turn, so that none stays in a cache
  auto cells = std::make_shared<std::vector<std::unique_ptr<Mlstm>>>();
  for (std::int64_t c = 0; c < kCells; ++c) cells->push_back(std::make_unique<Mlstm>(K, V, 1, ops::Form::Auto));
  Workload work;
  work.unit = "tok/s";
  work.units = kCells;
  work.bound = Bound::MemoryCopy;
  work.cost = static_cast<double>(kCells * kHeads * K * V * sizeof(float));
  work.run = [=](Context& ctx) {
    for (const auto& cell : *cells) cell->forward(ctx);
  };
  return work;
}

struct Slstm {
  Slstm(std::int64_t D, std::int64_t time)
      : segments(Segments::uniform(1, time)),
        x(spread({time, 4 * kHeads * D}, -2, 2)),
        R(spread({kHeads, 4 * D, D}, -0.1F, 0.1F)),
        state(Tensor::zeros({1, 4, kHeads * D})),
        y(Tensor::zeros({time, kHeads * D})),
        trace(Tensor::zeros({kHeads, time, ops::kSlstmTrace * D})),
        grad_y(spread(y.shape(), -1, 1)),
        grad_x(Tensor::zeros(x.shape())),
        grad_R(Tensor::zeros(R.shape())) {}

  void forward(Context& ctx, bool traced) {
    ops::slstm<float>(ctx, {x.view<const float, 2>(), R.view<const float, 3>()}, segments, state.view<float, 3>(),
                      y.view<float, 2>(), traced ? trace.view<float, 3>() : View<float, 3>{});
  }
  void training(Context& ctx) {
    state.fill(0);
    forward(ctx, true);
    ops::SlstmGradients<float> out;
    out.x = grad_x.view<float, 2>();
    out.R = grad_R.view<float, 3>();
    ops::slstm_backward<float>(ctx, {x.view<const float, 2>(), R.view<const float, 3>()}, segments, {},
                               y.view<const float, 2>(), trace.view<const float, 3>(), grad_y.view<const float, 2>(),
                               {}, out);
  }

  Segments segments;
  Tensor x, R, state, y, trace, grad_y, grad_x, grad_R;
};

// The recurrent product is what cannot be avoided: one slot per vector of weights, twice more in the backward pass.
Workload slstm(std::int64_t D, std::int64_t time, bool training) {
  auto cell = std::make_shared<Slstm>(D, time);
  Workload work;
  work.unit = "tok/s";
  work.units = static_cast<double>(time);
  work.cost = work.units * static_cast<double>(kHeads * 4 * D * D) / lanes_f32() * (training ? 3 : 1);
  work.run = [=](Context& ctx) { training ? cell->training(ctx) : cell->forward(ctx, false); };
  return work;
}

}  // namespace

std::vector<Case> xlstm_cases() {
  std::vector<Case> cases;
  const auto add = [&](std::int64_t K, std::int64_t V, std::int64_t time) {
    const std::string shape = "H4 " + std::to_string(K) + "x" + std::to_string(V) + " T" + std::to_string(time);
    for (const auto& [name, form] : {std::pair{" recurrent", ops::Form::Recurrent}, {" chunked", ops::Form::Chunked}}) {
      cases.push_back({"mlstm", shape + name, [=] { return mlstm(K, V, time, form, false); }});
    }
    cases.push_back({"mlstm", shape + " forward+backward", [=] { return mlstm(K, V, time, ops::Form::Auto, true); }});
  };
  for (const std::int64_t time : {256, 1024, 4096}) {
    add(256, 512, time);
    add(128, 256, time);
  }
  cases.push_back({"mlstm", "H4 256x512 step", mlstm_step});
  for (const std::int64_t units : {32, 128}) {
    const std::string shape = "H4 D" + std::to_string(units) + " T256";
    cases.push_back({"slstm", shape + " forward", [=] { return slstm(units, 256, false); }});
    cases.push_back({"slstm", shape + " forward+backward", [=] { return slstm(units, 256, true); }});
  }
  return cases;
}

}  // namespace stepwell::bench
