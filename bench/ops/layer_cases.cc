// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "stepwell/layers/registry.h"

#include "bench/ops/cases.h"

namespace stepwell::bench {

namespace {

constexpr std::int64_t kWidth = 128, kBatch = 4, kTime = 256;

// Four heads where a layer's defaults suit far larger widths; else the defaults.
Config options_for(std::string_view name) {
  if (name == "gated_delta_net2" || name == "kimi_delta_attention" || name == "gated_delta_net") {
    return Config(Config::Object{{"num_heads", 4}, {"head_dim", 32}});
  }
  return Config(Config::Object{});
}

struct Mixing {
  explicit Mixing(const layers::MixerRow& row) : layer(row.make(kWidth, options_for(row.name), Rng(1))) {}
  std::unique_ptr<layers::Layer> layer;
  Tensor x = spread({kBatch, kTime, kWidth}, -1, 1);
};

Workload layer(const layers::MixerRow& row, bool training) {
  auto mixing = std::make_shared<Mixing>(row);
  Workload work;
  work.unit = "tok/s";
  work.units = kBatch * kTime;
  work.bound = Bound::None;
  work.run = [=](Context& ctx) {
    if (!training) {
      const NoGrad no_grad;
      mixing->layer->forward(ctx, Variable(mixing->x));
      return;
    }
    const Variable loss = mean(ctx, mixing->layer->forward(ctx, Variable(mixing->x)).y);
    backward(ctx, loss);
  };
  return work;
}

}  // namespace

std::vector<Case> layer_cases() {
  std::vector<Case> cases;
  for (const layers::MixerRow& row : layers::mixers()) {
    const std::string shape = std::string(row.name) + " E128 B4 T256";
    cases.push_back({"layer", shape + " forward", [&row] { return layer(row, false); }});
    cases.push_back({"layer", shape + " f+b", [&row] { return layer(row, true); }});
  }
  return cases;
}

}  // namespace stepwell::bench
