// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/layers/delta_layer.h"

namespace stepwell::layers {

struct GatedDeltaNetConfig {
  std::int64_t hidden_size = 0;
  std::int64_t num_heads = 6;     // of queries and keys
  std::int64_t num_v_heads = 0;   // a multiple of num_heads; 0: num_heads
  std::int64_t head_dim = 256;    // of queries and keys
  double expand_v = 2;            // width of values / head_dim
  bool allow_neg_eigval = false;  // gates up to 2
  bool use_gate = true;           // of the output
  GateActivation output_gate = GateActivation::Silu;
  bool use_short_conv = true;
  std::int64_t conv_size = 4;
  bool conv_bias = false;
  double norm_eps = 1e-5;
  DeltaInit init = DeltaInit::Uniform;

  // From the options of a case file or a recipe; unknown keys and values out of range throw Error. hidden_size, if
  // among them, must be `width`.
  static GatedDeltaNetConfig read(std::int64_t width, const Config& options);
  Config options() const;  // what read() takes, every option spelled out
};

// Gated DeltaNet (arXiv:2412.06464): one decay and one gate that erases and writes per value head.
// Parameters beside DeltaLayer's (M = hidden_size, HV value heads of V): a_proj.weight [HV, M], A_log [HV] and dt_bias
// [HV] (decay); b_proj.weight [HV, M]; g_proj.weight [HV·V, M] (output gate, with use_gate); o_norm.weight [V].
class GatedDeltaNet : public DeltaLayer {
 public:
  GatedDeltaNet(const GatedDeltaNetConfig& config, const Rng& rng);
  std::string_view type() const override { return "gated_delta_net"; }
  Config config() const override { return config_.options(); }

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const override;

 private:
  GatedDeltaNetConfig config_;
  Projection a_, b_, g_;
};

}  // namespace stepwell::layers
