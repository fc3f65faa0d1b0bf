// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "stepwell/core/rng.h"
#include "stepwell/layers/layer.h"

namespace stepwell::layers {

// Bounds of Mamba-2's step sizes at run time (not those of their first values).
struct StepLimits {
  double low = 0, high = std::numeric_limits<double>::infinity();
};

enum class DecayInit {
  Uniform,  // A uniform in A_init_range
  Ordinal,  // A = 1, 2, … over the heads, as Hugging Face's models start
};

struct Mamba2Config {
  std::int64_t d_model = 0;
  std::int64_t d_state = 128;
  std::int64_t d_conv = 4;
  std::int64_t expand = 2;
  std::int64_t d_inner = 0;  // 0: expand · d_model; given, it wins over expand
  std::int64_t d_ssm = 0;    // channels of the recurrence; 0: all d_inner. The others are a gated linear unit
  std::int64_t headdim = 64;
  std::int64_t ngroups = 1;  // of heads that share B and C
  bool D_has_hdim = false;   // D per channel instead of per head
  bool rmsnorm = true;
  bool norm_before_gate = false;
  std::int64_t norm_group_size = 0;  // 0: d_ssm / ngroups
  double norm_eps = 1e-5;
  StepLimits dt_limit{};
  bool bias = false;  // of in_proj and out_proj
  bool conv_bias = true;
  bool learnable_init_states = false;
  DecayInit A_init = DecayInit::Uniform;
  double A_low = 1, A_high = 16;                             // "A_init_range"
  double dt_min = 1e-3, dt_max = 0.1, dt_init_floor = 1e-4;  // of the first step sizes alone

  // From the options of a case file, a recipe or a published configuration: beside the names above those of Hugging
  // Face (state_size, conv_kernel, head_dim, num_heads, n_groups, rms_norm, layer_norm_epsilon, use_bias,
  // use_conv_bias, time_step_limit, time_step_min, time_step_max, time_step_floor), which win where both stand. nheads
  // must be d_ssm / headdim, chunk_size changes nothing; unknown keys and values out of range throw Error. d_model, if
  // among them, must be `width`.
  static Mamba2Config read(std::int64_t width, const Config& options);
  Config options() const;  // what read() takes, every option spelled out
};

// Mamba-2 (SSD, arXiv:2405.21060): a state of d_state rows per channel, decayed by one factor per head and token.
// Parameters (D = d_inner, H = d_ssm / headdim heads, G = ngroups, N = d_state, M = d_model): in_proj.weight
// [2D+2GN+H, M], in_proj.bias, conv1d.weight [d_ssm+2GN, 1, K], conv1d.bias, dt_bias, A_log [H], D [H] or [d_ssm],
// norm.weight [d_ssm], out_proj.weight [M, D], out_proj.bias, init_states [H, headdim, N].
// State: conv_state, the last K inputs of the convolution, [K, d_ssm+2GN] (exchange [d_ssm+2GN, K]); ssm_state, packed
// (exchange [H, headdim, N]).
class Mamba2 : public Layer {
 public:
  Mamba2(const Mamba2Config& config, const Rng& rng);

  std::string_view type() const override { return "mamba2"; }
  Config config() const override { return config_.options(); }
  std::int64_t width() const override { return config_.d_model; }
  const std::vector<StateField>& state_fields() const override { return fields_; }
  State initial_state(Context& ctx, std::int64_t sequences) const override;
  std::vector<Variable> export_state(Context& ctx, const State& state) const override;
  State import_state(Context& ctx, std::vector<Variable> fields) const override;

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const override;
  void derive(Context& ctx) override;

 private:
  Variable learned_state(Context& ctx, std::int64_t sequences) const;
  Variable gated(Context& ctx, const Variable& y, const Variable& z) const;

  Mamba2Config config_;
  std::vector<StateField> fields_;
  // Null where the configuration has no such parameter.
  Parameter *in_proj_ = nullptr, *in_proj_bias_ = nullptr, *conv_ = nullptr, *conv_bias_ = nullptr, *dt_bias_ = nullptr,
            *A_log_ = nullptr, *D_ = nullptr, *norm_ = nullptr, *out_proj_ = nullptr, *out_proj_bias_ = nullptr,
            *init_states_ = nullptr;
};

}  // namespace stepwell::layers
