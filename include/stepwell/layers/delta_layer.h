// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepwell/core/rng.h"
#include "stepwell/layers/layer.h"

namespace stepwell::layers {

// First values of projections and convolutions. All: norms 1, biases of projections 0 but for Uniform.
enum class DeltaInit {
  Uniform,  // uniform in ±1/sqrt(fan_in), biases too: the published layers by themselves
  Normal,   // normal with deviation 0.02: the published language models
  Xavier,   // uniform in ±gain·sqrt(6/(fan_in + fan_out)) with gain 2^(−2.5); convolutions as in Uniform: the
            // authors of Gated DeltaNet-2
};

struct DeltaSizes {
  std::int64_t width = 0;                       // of x and y
  std::int64_t heads = 0, value_heads = 0;      // H, HV
  std::int64_t key_width = 0, value_width = 0;  // of a head: K, V
  std::int64_t sharing = 1;                     // query heads that have keys and values in common
  std::int64_t conv_size = 0;                   // taps of the short convolutions; 0: none
  bool conv_bias = false;
  DeltaInit init = DeltaInit::Uniform;
  double norm_eps = 1e-5;
};

// What the mixers built on the gated delta rule (ops/gated_delta.h) share: projections of a token to queries, keys and
// values, each with its short convolution, the recurrence, and a norm of every head's output, gated or not.
// Parameters (M = hidden_size): q_proj.weight, k_proj.weight, v_proj.weight [channels, M], o_proj.weight [M, HV·V];
// with short convolutions q_conv1d.weight, k_conv1d.weight, v_conv1d.weight [channels, 1, conv_size] and their biases;
// a norm's weight [V].
// State: conv_state_q, conv_state_k, conv_state_v, the last inputs of the convolutions, [conv_size, channels] (exchange
// [channels, conv_size]; absent without convolutions); recurrent_state, packed (exchange [HV, K, V]).
class DeltaLayer : public Layer {
 public:
  std::int64_t width() const override { return sizes_.width; }
  const std::vector<StateField>& state_fields() const override { return fields_; }
  std::vector<Variable> export_state(Context& ctx, const State& state) const override;
  State import_state(Context& ctx, std::vector<Variable> fields) const override;

 protected:
  // A projection, or one in two steps through a narrow middle.
  struct Projection {
    Parameter *narrow = nullptr, *weight = nullptr, *bias = nullptr;
  };

  DeltaLayer(const DeltaSizes& sizes, const Rng& rng);

  // Parameters `name`.weight [out, in], or `name`.0.weight [rank, in] and `name`.1.weight [out, rank].
  Projection add_projection(const std::string& name, std::int64_t in, std::int64_t out);
  Projection add_low_rank(const std::string& name, std::int64_t rank, std::int64_t out, bool bias);
  // A_log [heads], the log of numbers uniform in (low, high] (0 if high = 0), and dt_bias [heads·channels], such that
  // the first steps are log-uniform in [0.001, 0.1].
  void add_decay(std::int64_t heads, std::int64_t channels, double low, double high);
  void add_norm(const std::string& name);

  Variable project(Context& ctx, const Variable& x, const Projection& p) const;
  // project() as [L, heads, width per head].
  Variable project_to_heads(Context& ctx, const Variable& x, const Projection& p, std::int64_t heads) const;
  // An erase or write gate: the sigmoid of project_to_heads(), doubled for eigenvalues down to −1.
  Variable gate(Context& ctx, const Variable& x, const Projection& p, std::int64_t heads, bool doubled = false) const;

  // Queries, keys and values of the tokens through their convolutions and activations, the convolutions' states pushed
  // to `last`. Scale and A_log, dt_bias (of add_decay) are set, gates are not.
  GatedDeltaArguments arguments(Context& ctx, const Variable& x, State& state, State& last, const Segments& segments,
                                ops::Activation query_key = ops::Activation::Silu,
                                ops::Activation value = ops::Activation::Silu) const;
  // The recurrence, the norm if there is one, with gate `z` [L, HV·V] (undefined: none), and the projection back.
  Variable finish(Context& ctx, const GatedDeltaArguments& rule, State& state, State& last, const Segments& segments,
                  const Variable& z = {}, GateActivation activation = GateActivation::Silu) const;

 private:
  struct Branch {
    Projection projection;
    Parameter *conv = nullptr, *conv_bias = nullptr;
  };
  Branch add_branch(const char* letter, std::int64_t channels);
  Variable run_branch(Context& ctx, const Variable& x, const Branch& branch, ops::Activation activation, State& state,
                      State& last, const Segments& segments) const;
  Tensor first_matrix(const std::string& name, std::int64_t out, std::int64_t in) const;

  DeltaSizes sizes_;
  Rng rng_;
  std::vector<StateField> fields_;
  Branch q_, k_, v_;
  Projection o_;
  Parameter *A_log_ = nullptr, *dt_bias_ = nullptr, *norm_ = nullptr;
};

}  // namespace stepwell::layers
