// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stepwell/core/rng.h"
#include "stepwell/layers/layer.h"

namespace stepwell::layers {

// How published checkpoints lay out the cell's parameters, after the code that wrote them.
enum class SlstmLayout {
  Vanilla,  // _recurrent_kernel_ [H, 4·D, D], rows gate by gate; _bias_ gate by gate, then head by head
  Cuda,     // _recurrent_kernel_ [H, D, 4·D], columns gate by gate; _bias_ head by head, then gate by gate
};
enum class SlstmBiasInit {
  PowerlawBlockdependent,  // forget gates' 5 − 12·(d/(D−1))^(0.3 + 1.3·block_idx/(num_blocks−1)), others 0
  SmallInit,               // forget gates' evenly from 3 to 6
  Standard,                // uniform in ±1/sqrt(embedding_dim)
  Zeros,
};
enum class SlstmRecurrentInit { Zeros, Standard };  // Standard: uniform in ±1/sqrt(embedding_dim)

struct SlstmConfig {
  std::int64_t embedding_dim = 0;
  std::int64_t num_heads = 4;           // a divisor of embedding_dim
  std::int64_t conv1d_kernel_size = 4;  // 0: no convolution
  SlstmLayout backend = SlstmLayout::Vanilla;
  double norm_eps = 1e-5;
  SlstmBiasInit bias_init = SlstmBiasInit::PowerlawBlockdependent;
  SlstmRecurrentInit recurrent_weight_init = SlstmRecurrentInit::Zeros;
  std::int64_t block_idx = 0, num_blocks = 1;  // in the model, for first values alone

  // From the options of a case file or a recipe; unknown keys and values out of range throw Error. embedding_dim, if
  // among them, must be `width`. A context_length is allowed and without meaning: any length works.
  static SlstmConfig read(std::int64_t width, const Config& options);
  Config options() const;  // what read() takes, every option spelled out
};

// The sLSTM layer of xLSTM (arXiv:2405.04517, fig. 9 without its feed-forward part): a short convolution before the
// input and forget gates, scalar memory with recurrence within heads, a norm per head.
// Parameters (E = embedding_dim, H heads of D): conv1d.conv.weight [E, 1, K], conv1d.conv.bias, igate.weight,
// fgate.weight, zgate.weight, ogate.weight [H, D, D], slstm_cell._recurrent_kernel_, slstm_cell._bias_ [4E]
// (SlstmLayout), group_norm.weight [E] (the norm scales by 1 + weight). As published, fgate.weight makes the cell's
// input gate and igate.weight its forget gate.
// State: state, y, c, n, m of every unit, [4, E] (exchange [4, S, E] over S sequences); conv_state, the last K inputs
// of the convolution, [K, E], unless there is none.
class Slstm : public Layer {
 public:
  Slstm(const SlstmConfig& config, const Rng& rng);

  std::string_view type() const override { return "slstm"; }
  Config config() const override { return config_.options(); }
  std::int64_t width() const override { return config_.embedding_dim; }
  const std::vector<StateField>& state_fields() const override { return fields_; }
  std::vector<Variable> export_state(Context& ctx, const State& state) const override;
  State import_state(Context& ctx, std::vector<Variable> fields) const override;

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const override;

 private:
  Tensor first_bias(const Rng& rng) const;

  SlstmConfig config_;
  std::vector<StateField> fields_;
  Tensor bias_order_;                                 // Cuda: where the bias's parts [gate, head] are
  Parameter *conv_ = nullptr, *conv_bias_ = nullptr;  // null without a convolution
  Parameter *igate_ = nullptr, *fgate_ = nullptr, *zgate_ = nullptr, *ogate_ = nullptr, *kernel_ = nullptr,
            *bias_ = nullptr, *norm_ = nullptr;
};

}  // namespace stepwell::layers
