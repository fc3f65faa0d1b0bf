// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stepwell/core/rng.h"
#include "stepwell/layers/delta_layer.h"

namespace stepwell::layers {

struct LinearAttentionConfig {
  std::int64_t hidden_size = 0;
  std::int64_t num_heads = 4;  // 1 to 16
  std::int64_t head_dim = 0;   // of keys and values; 0: hidden_size / num_heads, which must divide

  // From the options of a case file or a recipe; unknown keys and values out of range throw Error. hidden_size, if
  // among them, must be `width`.
  static LinearAttentionConfig read(std::int64_t width, const Config& options);
  Config options() const;
};

// Linear attention with a fixed decay 1 − 2^(−5−h) in head h (RetNet's retention without rotation, gate and norm,
// arXiv:2307.08621): the smallest mixer, and the pattern for a new one. Parameters and state are DeltaLayer's, without
// norm and convolutions.
class LinearAttention : public DeltaLayer {
 public:
  LinearAttention(const LinearAttentionConfig& config, const Rng& rng);

  std::string_view type() const override { return "linear_attention"; }
  Config config() const override { return config_.options(); }

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const override;

 private:
  LinearAttentionConfig config_;
  Tensor log_decay_f32_, log_decay_f64_;  // [H]
};

}  // namespace stepwell::layers
