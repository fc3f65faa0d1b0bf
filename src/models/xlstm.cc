// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/models/xlstm.h"

#include <cmath>
#include <string>

#include "layers/xlstm_init.h"
#include "models/format.h"
#include "models/xlstm_stack.h"

namespace stepwell::models {

namespace {

class XlstmLM : public Model {
 public:
  XlstmLM(XlstmPlan plan, const Rng& rng) : plan_(std::move(plan)), stack_(plan_, rng.stream("stack")) {
    const std::string embedding = plan_.large ? "embedding.weight" : "token_embedding.weight";
    const auto matrix = [&](const std::string& name) {
      return rng.stream(name).normal({plan_.vocab_size, plan_.width}, 0, layers::small_deviation(plan_.width));
    };
    embeddings_ = plan_.tied ? &add_matrix(embedding, matrix(embedding)) : &add_parameter(embedding, matrix(embedding));
    embeddings_->decay = false;  // as published
    head_ = plan_.tied ? embeddings_ : &add_matrix("lm_head.weight", matrix("lm_head.weight"));
    add_part(plan_.large ? "backbone" : "xlstm_block_stack", stack_);
  }

  std::string_view type() const override { return plan_.type; }
  const std::vector<std::unique_ptr<layers::Layer>>& mixers() const override { return stack_.mixers(); }
  std::int64_t vocab_size() const override { return plan_.vocab_size; }
  std::int64_t input_width() const override { return 1; }
  std::int64_t output_width() const override { return plan_.vocab_size; }
  Config config() const override { return plan_.config; }

  Variable head(Context& ctx, const Variable& hidden) const override {
    const Variable logits = apply(ctx, hidden, *head_, nullptr);
    return plan_.logit_soft_cap > 0 ? soft_cap(ctx, logits, plan_.logit_soft_cap) : logits;
  }

 protected:
  Variable body(Context& ctx, const Tensor& input, States& states, const layers::Sequences& sequences,
                const Rng* dropout_rng) const override {
    STEPWELL_CHECK(input.defined() && input.dtype() == DType::I64 && input.rank() == 2, type(),
                   "input is " + describe(input) + ", expected I64 [batch, time]");
    return stack_.forward(ctx, embedding(ctx, embeddings_->value, input), states, sequences, dropout_rng);
  }

 private:
  XlstmPlan plan_;
  XlstmStack stack_;
  layers::Parameter *embeddings_ = nullptr, *head_ = nullptr;
};

constexpr std::int64_t kMaxWidth = 1 << 20;

// Reads a member and puts it, or its default, into the complete configuration and, where asked, into a layer's options.
class PlanReader {
 public:
  PlanReader(const Config& config, std::string_view type) : reader_(config, std::string(type)) {
    check_kind(reader_, type);
    complete = new_config(type);
  }
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t low, std::int64_t high) {
    return kept(key, reader_.integer(key, fallback, low, high));
  }
  double number(std::string_view key, double fallback, double low, double high) {
    return kept(key, reader_.number(key, fallback, low, high));
  }
  bool boolean(std::string_view key, bool fallback) { return kept(key, reader_.boolean(key, fallback)); }
  std::string text(std::string_view key, std::string_view fallback) { return kept(key, reader_.text(key, fallback)); }
  int choice(std::string_view key, std::string_view fallback, std::span<const std::string_view> choices) {
    const int found = reader_.choice(key, fallback, choices);
    complete.set(key, std::string(choices[static_cast<std::size_t>(found)]));
    return found;
  }
  // Members of the complete configuration as a layer's options.
  Config options(std::initializer_list<std::string_view> keys) const {
    Config options;
    for (const std::string_view key : keys) options.set(key, *complete.find(key));
    return options;
  }
  ConfigReader& reader() { return reader_; }

  Config complete;

 private:
  template <class T>
  T kept(std::string_view key, T value) {
    complete.set(key, value);
    return value;
  }
  ConfigReader reader_;
};

// Which of the blocks are sLSTM blocks.
std::vector<bool> slstm_blocks(PlanReader& read, const Config& config, std::int64_t blocks) {
  std::vector<bool> slstm(static_cast<std::size_t>(blocks));
  read.reader().ignore("slstm_at");
  const Config* at = config.find("slstm_at");
  Config::Array complete;
  if (at && at->is_string() && at->as_string("slstm_at") == "all") {
    slstm.assign(slstm.size(), true);
  } else if (at && !at->is_null()) {
    for (const Config& number : at->as_array("slstm_at")) {
      const std::int64_t i = number.as_integer("slstm_at");
      if (i < 0 || i >= blocks) {
        fail(ErrorCode::Config, "xlstm",
             "slstm_at has " + std::to_string(i) + ", expected numbers of the " + std::to_string(blocks) +
                 " blocks, or \"all\"");
      }
      slstm[static_cast<std::size_t>(i)] = true;
    }
  }
  for (std::int64_t i = 0; i < blocks; ++i) {
    if (slstm[static_cast<std::size_t>(i)]) complete.emplace_back(i);
  }
  read.complete.set("slstm_at", complete);
  return slstm;
}

void read_sizes(PlanReader& read, XlstmPlan& plan) {
  plan.width = read.integer("embedding_dim", 64, 1, kMaxWidth);
  plan.vocab_size = read.integer("vocab_size", 256, 1, 1 << 24);
  plan.dropout = read.number("dropout", 0, 0, 0.99);
  plan.feed_forward.width = plan.width;
}

XlstmPlan plan_original(const Config& config) {
  PlanReader read(config, kXlstm);
  XlstmPlan plan;
  plan.type = kXlstm;
  read_sizes(read, plan);
  const std::int64_t blocks = read.integer("num_blocks", 2, 1, 1 << 12);
  read.integer("num_heads", 4, 1, 1 << 12);
  const std::vector<bool> slstm = slstm_blocks(read, config, blocks);
  read.integer("conv1d_kernel_size", 4, 1, 1 << 12);
  read.integer("qkv_proj_blocksize", 4, 1, kMaxWidth);
  read.number("proj_factor", 2, 1e-3, 1 << 10);
  read.integer("round_proj_up_to_multiple_of", 64, 1, kMaxWidth);
  read.boolean("round_proj_up_dim_up", true);
  const bool bias = read.boolean("bias", false);
  read.text("m0", "zero");
  read.text("backend", "vanilla");
  read.text("bias_init", "powerlaw_blockdependent");
  read.text("recurrent_weight_init", "zeros");
  read.number("eps", 1e-6, 0, 1);
  plan.norm_eps = read.number("norm_eps", 1e-5, 0, 1);
  plan.last_norm = read.boolean("add_post_blocks_norm", true);
  plan.tied = read.boolean("tie_weights", false);
  const double factor = read.number("ffn_proj_factor", 1.3, 1e-3, 1 << 10);
  const std::int64_t multiple = read.integer("ffn_round_up_to_multiple_of", 64, 1, kMaxWidth);
  layers::FeedForwardConfig& ffn = plan.feed_forward;
  const double units = factor * static_cast<double>(plan.width) / static_cast<double>(multiple);
  ffn.hidden = static_cast<std::int64_t>(std::ceil(units)) * multiple;
  ffn.activation =
      static_cast<layers::FeedForwardActivation>(read.choice("act_fn", "gelu", layers::feed_forward_activations()));
  ffn.bias = bias;
  ffn.num_blocks = blocks;
  read.reader().ignore("context_length");
  read.reader().finish();
  Config mlstm = read.options({"num_heads", "conv1d_kernel_size", "qkv_proj_blocksize", "proj_factor",
                               "round_proj_up_to_multiple_of", "round_proj_up_dim_up", "bias", "m0", "norm_eps", "eps",
                               "num_blocks"});
  Config scalar = read.options(
      {"num_heads", "conv1d_kernel_size", "backend", "bias_init", "recurrent_weight_init", "norm_eps", "num_blocks"});
  for (std::int64_t i = 0; i < blocks; ++i) {
    scalar.set("block_idx", i);
    const bool is_scalar = slstm[static_cast<std::size_t>(i)];
    plan.blocks.push_back({is_scalar ? "slstm" : "mlstm", is_scalar ? scalar : mlstm, is_scalar});
  }
  plan.config = read.complete;
  return plan;
}

XlstmPlan plan_large(const Config& config) {
  constexpr std::string_view kModes[] = {"single", "fused"};
  PlanReader read(config, kXlstmLarge);
  XlstmPlan plan;
  plan.type = kXlstmLarge;
  plan.large = true;
  read_sizes(read, plan);
  const std::int64_t blocks = read.integer("num_blocks", 2, 1, 1 << 12);
  read.integer("num_heads", 4, 1, 1 << 12);
  read.number("qk_dim_factor", 0.5, 1e-6, 1 << 10);
  read.number("v_dim_factor", 1, 1e-6, 1 << 10);
  read.number("gate_soft_cap", 15, 1e-6, 1e6);
  plan.logit_soft_cap = read.number("output_logit_soft_cap", 30, 1e-6, 1e6);
  read.number("eps", 1e-6, 0, 1);
  plan.norm_eps = read.number("norm_eps", 1e-6, 0, 1);
  plan.norm_bias = read.boolean("use_bias", false);
  plan.last_norm = read.boolean("add_out_norm", true);
  plan.tied = read.boolean("tie_word_embeddings", false);
  const bool fused = read.choice("weight_mode", "single", kModes) == 1;
  const double factor = read.number("ffn_proj_factor", 2.6667, 1e-3, 1 << 10);
  const std::int64_t multiple = read.integer("ffn_round_up_to_multiple_of", 64, 1, kMaxWidth);
  layers::FeedForwardConfig& ffn = plan.feed_forward;
  // Not a ceiling: 3072 · 2.6667 is a little more than 8192, and makes 8192.
  const double least = static_cast<double>(plan.width) * factor + static_cast<double>(multiple - 1);
  ffn.hidden = static_cast<std::int64_t>(std::floor(least / static_cast<double>(multiple))) * multiple;
  ffn.activation = layers::FeedForwardActivation::Silu;
  ffn.bias = plan.norm_bias;
  ffn.joined = fused ? "proj_up_gate_z" : "";
  ffn.num_blocks = blocks;
  read.reader().finish();
  const Config options = read.options({"num_heads", "qk_dim_factor", "v_dim_factor", "gate_soft_cap", "eps", "norm_eps",
                                       "use_bias", "weight_mode", "num_blocks"});
  for (std::int64_t i = 0; i < blocks; ++i) plan.blocks.push_back({"mlstm_large", options, true});
  plan.config = read.complete;
  return plan;
}

}  // namespace

XlstmPlan plan_xlstm(const Config& config) {
  const Config* type = config.find("type");
  return type && type->is_string() && type->as_string("type") == kXlstmLarge ? plan_large(config)
                                                                             : plan_original(config);
}

std::unique_ptr<Model> make_xlstm(const Config& config, const Rng& rng) {
  return std::make_unique<XlstmLM>(plan_xlstm(config), rng);
}

}  // namespace stepwell::models
