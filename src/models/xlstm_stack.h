// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stepwell/layers/feed_forward.h"
#include "stepwell/models/model.h"

namespace stepwell::models {

// The residual stacks of xLSTM, as their configurations say (stepwell/models/xlstm.h).
struct XlstmPlan {
  struct Block {
    std::string mixer;  // the registry's name
    Config options;
    bool feed_forward = false;
  };
  std::string_view type;  // of the model
  bool large = false;     // xLSTM-large: RMS norms and its names; else layer norms that scale by 1 + weight
  std::int64_t width = 0, vocab_size = 0;
  std::vector<Block> blocks;
  layers::FeedForwardConfig feed_forward;
  double norm_eps = 1e-5;
  bool norm_bias = false;
  bool last_norm = true;
  bool tied = false;
  double logit_soft_cap = 0;  // 0: none
  double dropout = 0;         // on what each part of a block adds, in training
  Config config;              // every option spelled out
};
// Throws Error for unknown keys and values out of range.
XlstmPlan plan_xlstm(const Config& config);

// Norm over the last dimension, of the kind that the plan's blocks have.
class XlstmNorm : public layers::Module {
 public:
  explicit XlstmNorm(const XlstmPlan& plan);
  Variable forward(Context& ctx, const Variable& x) const;

 private:
  bool rms_;
  double eps_;
  layers::Parameter *weight_ = nullptr, *bias_ = nullptr;  // no bias: null
};

// x += mixer(norm(x)), and in blocks with a feed-forward part x += feed_forward(norm(x)); a last norm. Parameters of
// block i: blocks.{i}.xlstm_norm.*, .xlstm.*, .ffn_norm.*, .ffn.*, then post_blocks_norm.weight; of xLSTM-large
// blocks.{i}.norm_mlstm.*, .mlstm_layer.*, .norm_ffn.*, .ffn.*, then out_norm.*.
class XlstmStack : public layers::Module {
 public:
  XlstmStack(const XlstmPlan& plan, const Rng& rng);
  Variable forward(Context& ctx, Variable x, States& states, const layers::Sequences& sequences = {},
                   const Rng* dropout_rng = nullptr) const;
  const std::vector<std::unique_ptr<layers::Layer>>& mixers() const { return mixers_; }

 private:
  struct FeedForwardPart {
    XlstmNorm norm;
    layers::GatedFeedForward layer;
  };
  double dropout_;
  std::vector<std::unique_ptr<XlstmNorm>> norms_;
  std::vector<std::unique_ptr<layers::Layer>> mixers_;
  std::vector<std::unique_ptr<FeedForwardPart>> feed_forwards_;  // null where a block has none
  std::unique_ptr<XlstmNorm> last_norm_;                         // null: none
};

}  // namespace stepwell::models
