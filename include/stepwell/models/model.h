// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stepwell/layers/layer.h"

namespace stepwell::models {

// The states of all layers of a model.
using States = std::vector<layers::State>;

// A stack of pre-norm residual blocks, x + mixer(norm(x)), with a final norm; any registered mixer. What CausalLM and
// Forecaster have in common. Parameters: layers.{i}.norm.weight, layers.{i}.mixer.*, norm_f.weight.
struct BackboneConfig {
  std::int64_t width = 64, layers = 2;
  std::string mixer = "mamba";  // the registry's name
  Config mixer_options;         // as the registry row takes them
  double norm_eps = 1e-5;
  double dropout = 0;  // on each block's output, in training
};

// What a stream and a trainer see of a model: immutable after loading, shared by streams.
class Model : public layers::Module {
 public:
  virtual std::string_view type() const = 0;  // "causal_lm", "forecaster"
  virtual Config config() const = 0;          // what config.json holds; make_model() takes it
  virtual const std::vector<std::unique_ptr<layers::Layer>>& mixers() const = 0;
  virtual std::int64_t input_width() const = 0;   // 1 token id, or the channels of a series
  virtual std::int64_t output_width() const = 0;  // logits, or channels

  // input: I64 ids [B, T] (CausalLM) or F32/F64 [B, T, channels] (Forecaster) → [B, T, output_width()]. `states`
  // in/out, one per layer; empty States: zero, and the outgoing states are put there. Dropout only with `dropout_rng`.
  virtual Variable forward(Context& ctx, const Tensor& input, States& states, const layers::Sequences& sequences = {},
                           const Rng* dropout_rng = nullptr) const = 0;
};

// A freshly initialised model from what config() gives; unknown keys throw.
std::unique_ptr<Model> make_model(const Config& config, const Rng& rng);

// Folder with config.json and model.safetensors (each sealed by a BLAKE3 sidecar, checked when present).
void save_model(const Model& model, const std::string& folder);
std::unique_ptr<Model> load_model(const std::string& folder);

}  // namespace stepwell::models
