// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "models/backbone.h"

#include <cmath>
#include <string>
#include <utility>

#include "stepwell/layers/registry.h"

namespace stepwell::models {

namespace {

// As published Mamba language models do it: with the depth, the sum of what all blocks add stays as large.
void scale_output(layers::Layer& mixer, std::string_view weight, double factor) {
  for (layers::Parameter* parameter : mixer.parameters()) {
    if (parameter->name != weight) continue;
    const Tensor scaled = parameter->value.value().clone();
    for (float& x : scaled.span<float>()) x *= static_cast<float>(factor);
    parameter->set(scaled);
  }
}

}  // namespace

Backbone::Backbone(const BackboneConfig& config, const Rng& rng)
    : config_(config), norm_f_(config.width, config.norm_eps) {
  STEPWELL_CHECK(config.layers >= 1, "model", "layers = " + std::to_string(config.layers) + ", expected at least 1");
  const layers::MixerRow& row = layers::find_mixer(config.mixer);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string name = "layers." + std::to_string(i);
    norms_.push_back(std::make_unique<layers::RmsNorm>(config.width, config.norm_eps));
    mixers_.push_back(row.make(config.width, config.mixer_options, rng.stream(name + ".mixer")));
    scale_output(*mixers_.back(), row.output_weight, 1 / std::sqrt(static_cast<double>(config.layers)));
    add_part(name + ".norm", *norms_.back());
    add_part(name + ".mixer", *mixers_.back());
  }
  add_part("norm_f", norm_f_);
}

Variable Backbone::forward(Context& ctx, Variable x, States& states, const layers::Sequences& sequences,
                           const Rng* dropout_rng) const {
  if (states.empty()) states.resize(mixers_.size());
  STEPWELL_CHECK(states.size() == mixers_.size(), "model",
                 std::to_string(states.size()) + " states for " + std::to_string(mixers_.size()) + " layers");
  for (std::size_t i = 0; i < mixers_.size(); ++i) {
    auto [y, state] = mixers_[i]->forward(ctx, norms_[i]->forward(ctx, x), std::move(states[i]), sequences);
    states[i] = std::move(state);
    if (dropout_rng && config_.dropout > 0) {
      y = dropout(ctx, y, config_.dropout, dropout_rng->stream(static_cast<std::uint64_t>(i)));
    }
    x = add(ctx, x, y);
  }
  return norm_f_.forward(ctx, x);
}

BackboneConfig Backbone::read(ConfigReader& reader) {
  BackboneConfig c;
  c.width = reader.integer("width", c.width, 1, 1 << 20);
  c.layers = reader.integer("layers", c.layers, 1, 1 << 12);
  c.mixer = reader.text("mixer", c.mixer);
  c.mixer_options = reader.child("mixer_options");
  c.norm_eps = reader.number("norm_eps", c.norm_eps, 0, 1);
  c.dropout = reader.number("dropout", c.dropout, 0, 0.99);
  return c;
}

void Backbone::write(Config& config) const {
  config.set("width", config_.width);
  config.set("layers", config_.layers);
  config.set("mixer", config_.mixer);
  config.set("mixer_options", mixers_.front()->config());
  config.set("norm_eps", config_.norm_eps);
  config.set("dropout", config_.dropout);
}

}  // namespace stepwell::models
