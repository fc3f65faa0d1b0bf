// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/layers/mlstm.h"

namespace stepwell::layers {

struct MlstmLargeConfig {
  std::int64_t embedding_dim = 0;
  std::int64_t num_heads = 8;
  double qk_dim_factor = 0.5, v_dim_factor = 1;  // width of all queries, of all values / embedding_dim, rounded down
  double gate_soft_cap = 15;
  double norm_eps = 1e-6, eps = 1e-6;  // of the norm, and of the cell's denominator
  bool use_bias = false;               // of the projections and the norm
  bool fused = false;                  // projections that read the same in one matrix (weight_mode "fused")
  std::int64_t num_blocks = 1;         // of the model, for first values alone
  GateInit init = GateInit::Reference;

  std::int64_t query_width() const;  // of all heads
  std::int64_t value_width() const;

  // From the options of a case file or a recipe; unknown keys and values out of range throw Error. embedding_dim, if
  // among them, must be `width`.
  static MlstmLargeConfig read(std::int64_t width, const Config& options);
  Config options() const;  // what read() takes, every option spelled out
};

// The mLSTM layer of xLSTM-large (arXiv:2503.13427, the layer of xLSTM-7B): no convolution and no projection up; capped
// gates, a norm per head, a sigmoid output gate.
// Parameters (E = embedding_dim, Q = query_width(), V = value_width(), H heads): q.weight, k.weight [Q, E], v.weight,
// ogate_preact.weight [V, E], igate_preact.weight, fgate_preact.weight [H, E] and their biases, multihead_norm.weight
// [V], out_proj.weight [E, V]. Fused: qkv_opreact.weight (rows q, k, v, o) and ifgate_preact.weight (i, f) with its
// bias. With use_bias also the other projections' biases and the norm's.
// State: C [H, units, Q/H, 16] packed (exchange [H, Q/H, V/H], keys first), n [H, Q/H], m [H].
class MlstmLarge : public Layer {
 public:
  MlstmLarge(const MlstmLargeConfig& config, const Rng& rng);

  std::string_view type() const override { return "mlstm_large"; }
  Config config() const override { return config_.options(); }
  std::int64_t width() const override { return config_.embedding_dim; }
  const std::vector<StateField>& state_fields() const override { return fields_; }
  std::vector<Variable> export_state(Context& ctx, const State& state) const override;
  State import_state(Context& ctx, std::vector<Variable> fields) const override;

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const override;

 private:
  struct Projection {
    Parameter *weight = nullptr, *bias = nullptr;  // no bias: null
  };
  Variable project(Context& ctx, const Variable& x, const Projection& projection) const;
  // The cell's inputs, and the output gate's pre-activation.
  std::pair<MlstmArguments, Variable> project(Context& ctx, const Variable& x) const;

  MlstmLargeConfig config_;
  std::vector<StateField> fields_;
  Projection q_, k_, v_, ogate_, igate_, fgate_;  // one in a matrix, or fused:
  Projection qkvo_, ifgate_;
  Projection norm_, out_;
};

}  // namespace stepwell::layers
