// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "stepwell/layers/delta_layer.h"

namespace stepwell::layers {

struct GatedLinearAttentionConfig {
  std::int64_t hidden_size = 0;
  std::int64_t num_heads = 4;
  std::int64_t num_kv_heads = 0;        // a divisor of num_heads, which share keys, values and decays; 0: num_heads
  double expand_k = 0.5, expand_v = 1;  // width of all keys, of all values / hidden_size
  bool use_output_gate = true;
  double gate_logit_normalizer = 16;  // log decay = log sigmoid(…) / this
  std::int64_t gate_low_rank_dim = 16;
  std::optional<double> clamp_min = {};  // the log decay's lowest value
  bool use_short_conv = false;           // with silu; without, queries, keys and values are linear
  std::int64_t conv_size = 4;
  bool conv_bias = false;
  double norm_eps = 1e-5;
  DeltaInit init = DeltaInit::Uniform;

  // From the options of a case file or a recipe; unknown keys and values out of range throw Error. hidden_size, if
  // among them, must be `width`.
  static GatedLinearAttentionConfig read(std::int64_t width, const Config& options);
  Config options() const;  // what read() takes, every option spelled out
};

// Gated linear attention (GLA, arXiv:2312.06635): decay per key channel, nothing is erased.
// Parameters beside DeltaLayer's (M = hidden_size, keys of kv heads of C channels in all, H heads of V):
// gk_proj.0.weight [gate_low_rank_dim, M], gk_proj.1.weight [C, gate_low_rank_dim], gk_proj.1.bias (decay);
// g_proj.weight [H·V, M] and g_norm_swish_gate.weight [V], or without an output gate g_norm.weight [V].
class GatedLinearAttention : public DeltaLayer {
 public:
  GatedLinearAttention(const GatedLinearAttentionConfig& config, const Rng& rng);
  std::string_view type() const override { return "gated_linear_attention"; }
  Config config() const override { return config_.options(); }

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const override;

 private:
  GatedLinearAttentionConfig config_;
  Projection gk_, g_;
};

}  // namespace stepwell::layers
