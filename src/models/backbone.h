// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "stepwell/layers/norm.h"
#include "stepwell/models/model.h"

namespace stepwell::models {

// What CausalLM and Forecaster have in common; see BackboneConfig.
class Backbone : public layers::Module {
 public:
  // Parameters draw from rng's streams "layers.{i}.mixer".
  Backbone(const BackboneConfig& config, const Rng& rng);

  // x [B, T, width] → [B, T, width]; the rest as in Model::forward.
  Variable forward(Context& ctx, Variable x, States& states, const layers::Sequences& sequences,
                   const Rng* dropout_rng) const;

  const std::vector<std::unique_ptr<layers::Layer>>& mixers() const { return mixers_; }

  // Takes the backbone's keys from a model's configuration, and puts them there.
  static BackboneConfig read(ConfigReader& reader);
  void write(Config& config) const;

 private:
  BackboneConfig config_;
  std::vector<std::unique_ptr<layers::RmsNorm>> norms_;
  std::vector<std::unique_ptr<layers::Layer>> mixers_;
  layers::RmsNorm norm_f_;
};

}  // namespace stepwell::models
