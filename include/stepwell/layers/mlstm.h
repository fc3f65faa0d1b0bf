// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stepwell/core/rng.h"
#include "stepwell/layers/layer.h"

namespace stepwell::layers {

// First values of the gates' weights. Everything else starts as published.
enum class GateInit {
  Reference,  // 0, as published: at first a gate does not depend on the token
  Active,     // normal like the projections (for tests); biases of input gates around 0
};
// What an exported state's C and n are made of: keys as they are, or keys·K^−½ (the original's step). The library's own
// have the scale on the query.
enum class StateScale { Query, Key };
// The stabiliser before the first token. With −∞ (the original's parallel form) the first tokens' denominator has no
// floor from a past; the difference is of the relative size of eps.
enum class FirstStabiliser { Zero, MinusInfinity };

struct MlstmConfig {
  std::int64_t embedding_dim = 0;
  std::int64_t num_heads = 4;
  std::int64_t conv1d_kernel_size = 4;
  std::int64_t qkv_proj_blocksize = 4;  // features of a block of the projections to q, k and v
  double proj_factor = 2;
  std::int64_t round_proj_up_to_multiple_of = 64;
  bool round_proj_up_dim_up = true;    // false: down
  std::int64_t inner_dim = 0;          // 0: embedding_dim · proj_factor, rounded; given, it wins
  bool bias = false;                   // of the projections
  double norm_eps = 1e-5, eps = 1e-6;  // of the norm, and of the cell's denominator
  FirstStabiliser m0 = FirstStabiliser::Zero;
  StateScale state_scale = StateScale::Query;
  std::int64_t num_blocks = 1;  // of the model, for first values alone
  GateInit init = GateInit::Reference;

  // From the options of a case file or a recipe; unknown keys and values out of range throw Error. embedding_dim, if
  // among them, must be `width`. A context_length is allowed and without meaning: any length works.
  static MlstmConfig read(std::int64_t width, const Config& options);
  Config options() const;  // what read() takes, every option spelled out
};

// The mLSTM layer of xLSTM (arXiv:2405.04517, fig. 10): projection up, a short convolution before queries and keys,
// matrix memory, a norm per head, a learnable skip, an output gate, projection down.
// Parameters (E = embedding_dim, I = inner_dim, H heads, blocks of p): proj_up.weight [2I, E], conv1d.conv.weight
// [I, 1, K], conv1d.conv.bias, q_proj.weight, k_proj.weight, v_proj.weight [I/p, p, p], mlstm_cell.igate.weight,
// mlstm_cell.fgate.weight [H, 3I] and their biases, mlstm_cell.outnorm.weight [I] (the norm scales by 1 + weight),
// learnable_skip [I], proj_down.weight [E, I]; with `bias` also the projections' biases.
// State: conv_state, the last K inputs of the convolution, [K, I]; C [H, units, I/H, 16] packed (exchange [H, I/H,
// I/H], keys first), n [H, I/H], m [H].
class Mlstm : public Layer {
 public:
  Mlstm(const MlstmConfig& config, const Rng& rng);

  std::string_view type() const override { return "mlstm"; }
  Config config() const override { return config_.options(); }
  std::int64_t width() const override { return config_.embedding_dim; }
  const std::vector<StateField>& state_fields() const override { return fields_; }
  // What the forward pass runs in from now on, instead of what the context's mode chooses: for comparisons.
  void use_form(ops::Form form, std::int64_t chunk);
  State initial_state(Context& ctx, std::int64_t sequences) const override;
  std::vector<Variable> export_state(Context& ctx, const State& state) const override;
  State import_state(Context& ctx, std::vector<Variable> fields) const override;

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const override;

 private:
  struct Projection {
    Parameter *weight = nullptr, *bias = nullptr;  // no bias: null
  };
  Variable blocks(Context& ctx, const Variable& x, const Projection& projection) const;

  MlstmConfig config_;
  ops::Form form_ = ops::Form::Auto;
  std::int64_t chunk_ = 0;
  std::vector<StateField> fields_;
  Projection up_, q_, k_, v_, igate_, fgate_, down_;
  Parameter *conv_ = nullptr, *conv_bias_ = nullptr, *norm_ = nullptr, *skip_ = nullptr;
};

}  // namespace stepwell::layers
