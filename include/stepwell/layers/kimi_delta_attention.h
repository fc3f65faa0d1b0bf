// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/layers/delta_layer.h"

namespace stepwell::layers {

struct KimiDeltaAttentionConfig {
  std::int64_t hidden_size = 0;
  std::int64_t num_heads = 16;    // of queries and keys
  std::int64_t num_v_heads = 0;   // a multiple of num_heads; 0: num_heads
  std::int64_t head_dim = 128;    // of queries and keys
  double expand_v = 1;            // width of values / head_dim
  bool allow_neg_eigval = false;  // gates up to 2
  GateActivation output_gate = GateActivation::Sigmoid;
  bool safe_gate = false;  // decays between lower_bound and 0
  double lower_bound = -5;
  bool use_short_conv = true;
  std::int64_t conv_size = 4;
  bool conv_bias = false;
  double norm_eps = 1e-5;
  DeltaInit init = DeltaInit::Uniform;

  // From the options of a case file or a recipe; unknown keys and values out of range throw Error. hidden_size, if
  // among them, must be `width`.
  static KimiDeltaAttentionConfig read(std::int64_t width, const Config& options);
  Config options() const;  // what read() takes, every option spelled out
};

// Kimi Delta Attention (KDA, arXiv:2510.26692): decay per key channel, one gate per value head that erases and writes.
// Parameters beside DeltaLayer's (M = hidden_size, HV value heads of V, keys of K): f_proj.0.weight [V, M],
// f_proj.1.weight [HV·K, V], A_log [HV], dt_bias [HV·K] (decay); b_proj.weight [HV, M]; g_proj.0.weight [V, M],
// g_proj.1.weight [HV·V, V], g_proj.1.bias (output gate); o_norm.weight [V].
class KimiDeltaAttention : public DeltaLayer {
 public:
  KimiDeltaAttention(const KimiDeltaAttentionConfig& config, const Rng& rng);
  std::string_view type() const override { return "kimi_delta_attention"; }
  Config config() const override { return config_.options(); }

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const override;

 private:
  KimiDeltaAttentionConfig config_;
  Projection f_, b_, g_;
};

}  // namespace stepwell::layers
