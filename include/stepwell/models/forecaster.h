// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/models/model.h"

namespace stepwell::models {

struct ForecasterConfig {
  BackboneConfig backbone{};
  std::int64_t channels = 1;

  static ForecasterConfig read(const Config& config);  // from Model::config(); unknown keys throw
};

// Real-valued series → next value: linear in → backbone → linear out. Parameters: in_proj.{weight,bias},
// backbone.layers.{i}.*, backbone.norm_f.weight, out_proj.{weight,bias}.
std::unique_ptr<Model> make_forecaster(const ForecasterConfig& config, const Rng& rng);

}  // namespace stepwell::models
