// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/feed_forward.h"

#include "layers/xlstm_init.h"

namespace stepwell::layers {

namespace {

constexpr std::string_view kActivations[] = {"gelu", "relu", "relu^2", "sigmoid", "swish"};

Variable activated(Context& ctx, const Variable& x, FeedForwardActivation activation) {
  switch (activation) {
    case FeedForwardActivation::Gelu: return gelu(ctx, x);
    case FeedForwardActivation::Relu: return relu(ctx, x);
    case FeedForwardActivation::ReluSquared: {
      const Variable y = relu(ctx, x);
      return mul(ctx, y, y);
    }
    case FeedForwardActivation::Sigmoid: return sigmoid(ctx, x);
    case FeedForwardActivation::Silu: return silu(ctx, x);
  }
  fail(ErrorCode::Internal, "feed_forward", "no such activation");
}

}  // namespace

std::span<const std::string_view> feed_forward_activations() { return kActivations; }

GatedFeedForward::GatedFeedForward(const FeedForwardConfig& config, const Rng& rng) : config_(config) {
  const std::int64_t E = config.width, U = config.hidden;
  STEPWELL_CHECK(E >= 1 && U >= 1, "feed_forward",
                 "width = " + std::to_string(E) + " and hidden = " + std::to_string(U) + ", expected at least 1");
  const auto projection = [&](const std::string& name, std::int64_t out, std::int64_t in, double deviation) {
    Projection made;
    made.weight = &add_matrix(name + ".weight", rng.stream(name + ".weight").normal({out, in}, 0, deviation));
    if (config.bias) made.bias = &add_parameter(name + ".bias", Tensor::zeros({out}), false);
    return made;
  };
  const double small = small_deviation(E);
  if (config.joined.empty()) {
    gate_ = projection("proj_up_gate", U, E, small);
    up_ = projection("proj_up", U, E, small);
  } else {
    joined_ = projection(config.joined, 2 * U, E, small);
  }
  down_ = projection("proj_down", E, U, wang_deviation(E, config.num_blocks));
}

Variable GatedFeedForward::project(Context& ctx, const Variable& x, const Projection& projection) const {
  return apply(ctx, x, *projection.weight, projection.bias);
}

Variable GatedFeedForward::forward(Context& ctx, const Variable& x) const {
  Variable gate, up;
  if (joined_.weight) {
    std::tie(gate, up) = split2(ctx, project(ctx, x, joined_), config_.hidden);
  } else {
    gate = project(ctx, x, gate_);
    up = project(ctx, x, up_);
  }
  return project(ctx, mul(ctx, activated(ctx, gate, config_.activation), up), down_);
}

}  // namespace stepwell::layers
