// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "models/xlstm_stack.h"

#include <utility>

#include "stepwell/layers/registry.h"

namespace stepwell::models {

namespace {

struct Names {
  std::string_view norm, mixer, feed_forward_norm, last_norm;
};
constexpr Names kOriginal = {"xlstm_norm", "xlstm", "ffn_norm", "post_blocks_norm"};
constexpr Names kLarge = {"norm_mlstm", "mlstm_layer", "norm_ffn", "out_norm"};

}  // namespace

XlstmNorm::XlstmNorm(const XlstmPlan& plan) : rms_(plan.large), eps_(plan.norm_eps) {
  weight_ = &add_parameter("weight", Tensor::full({plan.width}, plan.large ? 1.0 : 0.0), false);
  if (plan.norm_bias) bias_ = &add_parameter("bias", Tensor::zeros({plan.width}), false);
}

Variable XlstmNorm::forward(Context& ctx, const Variable& x) const {
  if (!rms_) return layer_norm(ctx, x, weight_->value, {}, eps_, 0, true);
  const Variable y = rms_norm(ctx, x, weight_->value, eps_);
  return bias_ ? add(ctx, y, bias_->value) : y;
}

XlstmStack::XlstmStack(const XlstmPlan& plan, const Rng& rng) : dropout_(plan.dropout) {
  const Names& names = plan.large ? kLarge : kOriginal;
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const XlstmPlan::Block& block = plan.blocks[i];
    const std::string prefix = "blocks." + std::to_string(i) + ".";
    const auto part = [&](std::string_view name, layers::Module& module) {
      add_part(prefix + std::string(name), module);
    };
    norms_.push_back(std::make_unique<XlstmNorm>(plan));
    mixers_.push_back(layers::find_mixer(block.mixer).make(plan.width, block.options, rng.stream(prefix + "mixer")));
    part(names.norm, *norms_.back());
    part(names.mixer, *mixers_.back());
    feed_forwards_.emplace_back();
    if (!block.feed_forward) continue;
    feed_forwards_.back().reset(
        new FeedForwardPart{XlstmNorm(plan), layers::GatedFeedForward(plan.feed_forward, rng.stream(prefix + "ffn"))});
    part(names.feed_forward_norm, feed_forwards_.back()->norm);
    part("ffn", feed_forwards_.back()->layer);
  }
  if (!plan.last_norm) return;
  last_norm_ = std::make_unique<XlstmNorm>(plan);
  add_part(std::string(names.last_norm), *last_norm_);
}

Variable XlstmStack::forward(Context& ctx, Variable x, States& states, const layers::Sequences& sequences,
                             const Rng* dropout_rng) const {
  if (states.empty()) states.resize(mixers_.size());
  STEPWELL_CHECK(states.size() == mixers_.size(), "xlstm",
                 std::to_string(states.size()) + " states for " + std::to_string(mixers_.size()) + " blocks");
  const auto added = [&](const Variable& y, std::size_t number) {
    const bool dropped = dropout_rng && dropout_ > 0;
    return add(ctx, x,
               dropped ? dropout(ctx, y, dropout_, dropout_rng->stream(static_cast<std::uint64_t>(number))) : y);
  };
  for (std::size_t i = 0; i < mixers_.size(); ++i) {
    auto [y, state] = mixers_[i]->forward(ctx, norms_[i]->forward(ctx, x), std::move(states[i]), sequences);
    states[i] = std::move(state);
    x = added(y, 2 * i);
    if (!feed_forwards_[i]) continue;
    const FeedForwardPart& part = *feed_forwards_[i];
    x = added(part.layer.forward(ctx, part.norm.forward(ctx, x)), 2 * i + 1);
  }
  return last_norm_ ? last_norm_->forward(ctx, x) : x;
}

}  // namespace stepwell::models
