// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/layers/delta_layer.h"

namespace stepwell::layers {

enum class QueryKeyActivation { Silu, Relu, Elu, Identity };  // Elu: 1 + elu
enum class QueryKeyNorm { L2, Sum };                          // Sum: every head's entries sum to 1

struct DeltaNetConfig {
  std::int64_t hidden_size = 0;
  std::int64_t num_heads = 4;
  double expand_k = 1, expand_v = 1;  // width of all keys, of all values / hidden_size
  bool use_beta = true;               // false: a gate of 1
  bool use_gate = false;              // of the output, silu
  bool allow_neg_eigval = false;      // gates up to 2
  QueryKeyActivation qk_activation = QueryKeyActivation::Silu;
  QueryKeyNorm qk_norm = QueryKeyNorm::L2;
  bool use_short_conv = true;
  std::int64_t conv_size = 4;
  bool conv_bias = false;
  double norm_eps = 1e-5;
  DeltaInit init = DeltaInit::Uniform;

  // From the options of a case file or a recipe; unknown keys and values out of range throw Error. hidden_size, if
  // among them, must be `width`.
  static DeltaNetConfig read(std::int64_t width, const Config& options);
  Config options() const;  // what read() takes, every option spelled out
};

// DeltaNet (arXiv:2406.06484): the delta rule without decay, one gate that erases and writes per head.
// Parameters beside DeltaLayer's (M = hidden_size, H heads, values of V): b_proj.weight [H, M] (with use_beta);
// g_proj.weight [H·V, M] (with use_gate); o_norm.weight [V].
class DeltaNet : public DeltaLayer {
 public:
  DeltaNet(const DeltaNetConfig& config, const Rng& rng);
  std::string_view type() const override { return "delta_net"; }
  Config config() const override { return config_.options(); }

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const override;

 private:
  Variable shaped(Context& ctx, const Variable& x) const;

  DeltaNetConfig config_;
  Projection b_, g_;
};

}  // namespace stepwell::layers
