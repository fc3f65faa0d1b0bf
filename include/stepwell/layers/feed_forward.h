// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "stepwell/core/rng.h"
#include "stepwell/layers/module.h"

namespace stepwell::layers {

enum class FeedForwardActivation { Gelu, Relu, ReluSquared, Sigmoid, Silu };  // Gelu: the exact one, with erf
// As published: gelu, relu, relu^2, sigmoid, swish; in the order of the enumerators.
std::span<const std::string_view> feed_forward_activations();

struct FeedForwardConfig {
  std::int64_t width = 0, hidden = 0;
  FeedForwardActivation activation = FeedForwardActivation::Gelu;
  bool bias = false;
  // The name of the one matrix up (gate rows first); empty: two, proj_up_gate and proj_up.
  std::string joined = "proj_up";
  std::int64_t num_blocks = 1;  // of the model, for first values alone
};

// Gated feed-forward part of a block: proj_down(act(gate)·up), gate and up linear in x.
// Parameters: proj_up.weight [2·hidden, width], or proj_up_gate.weight and proj_up.weight [hidden, width];
// proj_down.weight [width, hidden]; with `bias` their biases.
class GatedFeedForward : public Module {
 public:
  GatedFeedForward(const FeedForwardConfig& config, const Rng& rng);
  Variable forward(Context& ctx, const Variable& x) const;  // x [..., width] → the same shape

 private:
  struct Projection {
    Parameter *weight = nullptr, *bias = nullptr;  // no bias: null
  };
  Variable project(Context& ctx, const Variable& x, const Projection& projection) const;

  FeedForwardConfig config_;
  Projection joined_, gate_, up_, down_;
};

}  // namespace stepwell::layers
