// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stepwell/models/model.h"

namespace stepwell::models {

struct ForecasterConfig {
  BackboneConfig backbone{};
  std::int64_t channels = 1;
  std::int64_t outputs = 0;            // how many of the channels are predicted, the first ones; 0: all
  std::vector<ChannelScale> scales{};  // one per channel; none: mean 0 and deviation 1

  static ForecasterConfig read(const Config& config);  // from Model::config(); unknown keys throw
};

// Real-valued series → next value: linear in → backbone → linear out. Parameters: in_proj.{weight,bias},
// backbone.layers.{i}.*, backbone.norm_f.weight, out_proj.{weight,bias}. In its configuration the scales are the arrays
// `mean` and `deviation`. Throws Error for outputs outside 0 … channels, scales of another number than channels or that
// are not finite, and deviations ≤ 0.
std::unique_ptr<Model> make_forecaster(const ForecasterConfig& config, const Rng& rng);

}  // namespace stepwell::models
