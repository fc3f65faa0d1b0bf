// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "stepwell/core/rng.h"
#include "stepwell/layers/layer.h"

namespace stepwell::layers {

// Initial values. All: A_log[d][n] = ln(n + 1), D = 1, projection biases 0.
enum class MambaInit {
  Reference,  // as published: step sizes log-uniform in [dt_min, dt_max], projections uniform in ±1/sqrt(fan_in)
  Stable,     // steps 0.01; projections normal · min(0.5, 1/sqrt(fan_in)); convolution bias 0
  Active,     // Stable with dt_proj.bias = 0: steps near 0.69, so that the scan drives the output (for tests)
};
enum class MambaStepInit { Random, Constant };  // dt_proj.weight: uniform in, or constant, ±dt_rank^−½ · dt_scale

struct MambaConfig {
  std::int64_t d_model = 0;
  std::int64_t d_state = 16;
  std::int64_t d_conv = 4;
  std::int64_t expand = 2;
  std::int64_t d_inner = 0;  // 0: expand · d_model; given, it wins over expand
  std::int64_t dt_rank = 0;  // 0 ("auto"): ⌈d_model / 16⌉
  bool bias = false;         // of in_proj and out_proj
  bool conv_bias = true;
  bool falcon_rms = false;      // divide the low-rank step, B and C by their root mean square
  double mixer_rms_eps = 1e-6;  // in that root
  ops::Discretisation discretisation = ops::Discretisation::Euler;
  MambaInit init = MambaInit::Reference;
  MambaStepInit dt_init = MambaStepInit::Random;
  double dt_min = 1e-3, dt_max = 0.1, dt_scale = 1, dt_init_floor = 1e-4;  // of the initial values alone

  // From the options of a case file or a recipe; unknown keys and values out of range throw Error. d_model, if among
  // them, must be `width`.
  static MambaConfig read(std::int64_t width, const Config& options);
  Config options() const;  // what read() takes, every option spelled out
};

// Mamba (arXiv:2312.00752): projections, a short convolution and the selective scan, without residual and norm.
// Parameters (D = d_inner, N = d_state, R = dt_rank, M = d_model): in_proj.weight [2D, M], in_proj.bias, conv1d.weight
// [D, 1, K], conv1d.bias, x_proj.weight [R+2N, D], dt_proj.weight [D, R], dt_proj.bias, A_log [D, N], D [D],
// out_proj.weight [M, D], out_proj.bias.
// State: conv_state, the last K inputs of the convolution, [K, D] (exchange [D, K]); ssm_state [N, D] (exchange [D,
// N]).
class Mamba : public Layer {
 public:
  Mamba(const MambaConfig& config, const Rng& rng);

  std::string_view type() const override { return "mamba"; }
  Config config() const override { return config_.options(); }
  std::int64_t width() const override { return config_.d_model; }
  const std::vector<StateField>& state_fields() const override { return fields_; }
  std::vector<Variable> export_state(Context& ctx, const State& state) const override;
  State import_state(Context& ctx, std::vector<Variable> fields) const override;

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const override;
  void derive(Context& ctx) override;

 private:
  MambaConfig config_;
  std::vector<StateField> fields_;
  // Null where the configuration has no such bias.
  Parameter *in_proj_ = nullptr, *in_proj_bias_ = nullptr, *conv_ = nullptr, *conv_bias_ = nullptr, *x_proj_ = nullptr,
            *dt_proj_ = nullptr, *dt_bias_ = nullptr, *A_log_ = nullptr, *D_ = nullptr, *out_proj_ = nullptr,
            *out_proj_bias_ = nullptr;
};

}  // namespace stepwell::layers
