// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepwell/core/config.h"
#include "stepwell/core/rng.h"
#include "stepwell/layers/layer.h"

namespace stepwell::models {

// The states of all layers of a model.
using States = std::vector<layers::State>;

// A stack of pre-norm residual blocks, x + mixer(norm(x)), with a final norm; any registered mixer. What CausalLM and
// Forecaster have in common. Parameters: layers.{i}.norm.weight, layers.{i}.mixer.*, norm_f.weight.
struct BackboneConfig {
  std::int64_t width = 64, layers = 2;
  std::string mixer = "mamba";  // the registry's name
  Config mixer_options{};       // as the registry row takes them
  double norm_eps = 1e-5;
  double dropout = 0;  // on each block's output, in training
};

// How a channel of a series comes to a model: as (value − mean) / deviation.
struct ChannelScale {
  double mean = 0, deviation = 1;
  bool operator==(const ChannelScale&) const = default;
};

// What a stream and a trainer see of a model: immutable after loading, shared by streams.
class Model : public layers::Module {
 public:
  virtual std::string_view type() const = 0;  // "causal_lm", "forecaster"
  virtual Config config() const = 0;          // what config.json holds, every option spelled out; make_model() takes it
  virtual const std::vector<std::unique_ptr<layers::Layer>>& mixers() const = 0;
  virtual std::int64_t vocab_size() const = 0;    // token ids run from 0 to it; 0: the input is a series of vectors
  virtual std::int64_t input_width() const = 0;   // 1 token id, or the channels of a series
  virtual std::int64_t output_width() const = 0;  // logits, or the channels that are predicted
  // Of a series, one per channel: what the model was trained on. forward() takes and gives scaled values, a Stream the
  // series' own.
  virtual std::span<const ChannelScale> scales() const { return {}; }

  // input: I64 ids [B, T] (CausalLM) or [B, T, channels] in the model's dtype (Forecaster) → [B, T, output_width()].
  // `states` in/out, one per layer; empty States: zero, and the outgoing states are put there. Padded positions are
  // never read; what comes out there depends on parameters alone. Dropout only with `dropout_rng`. Throws Error for
  // wrong shapes, dtypes and ids; `states` are then unspecified.
  Variable forward(Context& ctx, const Tensor& input, States& states, const layers::Sequences& sequences = {},
                   const Rng* dropout_rng = nullptr) const {
    return head(ctx, hidden(ctx, input, states, sequences, dropout_rng));
  }

  // The two parts of forward(): up to the final norm, [B, T, width], and from there (rows of any number), so that
  // outputs need not be computed where nobody asks for them.
  Variable hidden(Context& ctx, const Tensor& input, States& states, const layers::Sequences& sequences = {},
                  const Rng* dropout_rng = nullptr) const;
  virtual Variable head(Context& ctx, const Variable& hidden) const = 0;

 protected:
  // hidden() without padding; checks its input.
  virtual Variable body(Context& ctx, const Tensor& input, States& states, const layers::Sequences& sequences,
                        const Rng* dropout_rng) const = 0;
};

// A freshly initialised model from what config() gives; unknown keys throw.
std::unique_ptr<Model> make_model(const Config& config, const Rng& rng);

// Folder with config.json and model.safetensors, each sealed by a BLAKE3 sidecar. Equal models give equal bytes.
void save_model(const Model& model, const std::string& folder);
// A folder of save_model, or a published language model (docs/models.md: Mamba and Falcon-Mamba as Hugging Face and
// state-spaces name things; F16 and BF16 become F32), whose parameters may be in several files. Checks seals where
// present; throws Error (File) for a damaged or unknown file, naming it, and for parameters that do not fit the
// configuration, listing all of them.
std::unique_ptr<Model> load_model(const std::string& folder);

// BLAKE3 of the configuration and of every parameter's name, dtype, shape and bytes, as hexadecimal digits: models with
// equal fingerprints compute the same.
std::string fingerprint(const Model& model);

}  // namespace stepwell::models
