// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/models/causal_lm.h"

#include <string>

#include "models/backbone.h"
#include "models/format.h"

namespace stepwell::models {

namespace {

class CausalLM : public Model {
 public:
  CausalLM(const CausalLMConfig& config, const Rng& rng)
      : config_(config), backbone_(config.backbone, rng.stream("backbone")) {
    const Shape shape{config.vocab_size, config.backbone.width};
    const auto normal = [&](const char* name) { return rng.stream(name).normal(shape, 0, 0.02); };
    constexpr const char* kEmbeddings = "backbone.embeddings.weight";
    embeddings_ = config.tie_embeddings ? &add_matrix(kEmbeddings, normal(kEmbeddings))
                                        : &add_parameter(kEmbeddings, normal(kEmbeddings));
    head_ = config.tie_embeddings ? embeddings_ : &add_matrix("lm_head.weight", normal("lm_head.weight"));
    add_part("backbone", backbone_);
  }

  std::string_view type() const override { return kCausalLM; }
  const std::vector<std::unique_ptr<layers::Layer>>& mixers() const override { return backbone_.mixers(); }
  std::int64_t vocab_size() const override { return config_.vocab_size; }
  std::int64_t input_width() const override { return 1; }
  std::int64_t output_width() const override { return config_.vocab_size; }

  Config config() const override {
    Config c = new_config(type());
    c.set("vocab_size", config_.vocab_size);
    c.set("tie_embeddings", config_.tie_embeddings);
    backbone_.write(c);
    return c;
  }

  Variable head(Context& ctx, const Variable& hidden) const override { return apply(ctx, hidden, *head_, nullptr); }

 protected:
  Variable body(Context& ctx, const Tensor& input, States& states, const layers::Sequences& sequences,
                const Rng* dropout_rng) const override {
    STEPWELL_CHECK(input.defined() && input.dtype() == DType::I64 && input.rank() == 2, type(),
                   "input is " + describe(input) + ", expected I64 [batch, time]");
    return backbone_.forward(ctx, embedding(ctx, embeddings_->value, input), states, sequences, dropout_rng);
  }

 private:
  CausalLMConfig config_;
  Backbone backbone_;
  layers::Parameter *embeddings_ = nullptr, *head_ = nullptr;
};

}  // namespace

CausalLMConfig CausalLMConfig::read(const Config& config) {
  ConfigReader reader(config, std::string(kCausalLM));
  CausalLMConfig c;
  check_kind(reader, kCausalLM);
  c.vocab_size = reader.integer("vocab_size", c.vocab_size, 1, 1 << 24);
  c.tie_embeddings = reader.boolean("tie_embeddings", c.tie_embeddings);
  c.backbone = Backbone::read(reader);
  reader.finish();
  return c;
}

std::unique_ptr<Model> make_causal_lm(const CausalLMConfig& config, const Rng& rng) {
  STEPWELL_CHECK(config.vocab_size >= 1, kCausalLM,
                 "vocab_size = " + std::to_string(config.vocab_size) + ", expected at least 1");
  return std::make_unique<CausalLM>(config, rng);
}

}  // namespace stepwell::models
