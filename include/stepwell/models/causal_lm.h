// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/models/model.h"

namespace stepwell::models {

struct CausalLMConfig {
  BackboneConfig backbone{};
  std::int64_t vocab_size = 256;  // bytes
  bool tie_embeddings = true;

  static CausalLMConfig read(const Config& config);  // from Model::config(); unknown keys throw
};

// Token language model: embedding → backbone → logits. Parameters: backbone.embeddings.weight [vocab, width],
// backbone.layers.{i}.norm.weight, backbone.layers.{i}.mixer.*, backbone.norm_f.weight, lm_head.weight if not tied.
std::unique_ptr<Model> make_causal_lm(const CausalLMConfig& config, const Rng& rng);

}  // namespace stepwell::models
