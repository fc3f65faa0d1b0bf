// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// Published xLSTM models: the original's blocks, and xLSTM-large as its authors and as Hugging Face name things.
#include <algorithm>
#include <string>
#include <utility>

#include "stepwell/io/json.h"
#include "stepwell/models/xlstm.h"

#include "models/format.h"
#include "models/published.h"

namespace stepwell::models {

namespace {

// Members of theirs and of ours. Of several rows with the same `ours` the first that is present counts. Whatever else
// their config.json holds chooses kernels, or is of no consequence.
constexpr KeyRow kLargeKeys[] = {
    {"embedding_dim", "embedding_dim"},
    {"hidden_size", "embedding_dim"},
    {"num_blocks", "num_blocks"},
    {"num_hidden_layers", "num_blocks"},
    {"num_heads", "num_heads"},
    {"vocab_size", "vocab_size"},
    {"use_bias", "use_bias"},
    {"qk_dim_factor", "qk_dim_factor"},
    {"v_dim_factor", "v_dim_factor"},
    {"ffn_proj_factor", "ffn_proj_factor"},
    {"ffn_round_up_to_multiple_of", "ffn_round_up_to_multiple_of"},
    {"gate_soft_cap", "gate_soft_cap"},
    {"output_logit_soft_cap", "output_logit_soft_cap"},
    {"norm_eps", "norm_eps"},
    {"eps", "eps"},
    {"weight_mode", "weight_mode"},
    {"tie_word_embeddings", "tie_word_embeddings"},
};
// What a model has where its config.json says nothing.
constexpr ValueRow kLargeValues[] = {
    {"embedding_dim", "4096"}, {"num_blocks", "32"}, {"num_heads", "8"}, {"vocab_size", "50304"}};
constexpr ValueRow kHuggingFaceValues[] = {{"ffn_proj_factor", "2.667"}};

constexpr std::string_view kLastNorm = "backbone.out_norm.weight";

Config large_config(const Config& config, const layers::NamedTensors& tensors) {
  Config ours = new_config(kXlstmLarge);
  for (const auto& [key, value] : kLargeValues) ours.set(key, io::parse_json(value, key));
  if (config.find("model_type")) {
    for (const auto& [key, value] : kHuggingFaceValues) ours.set(key, io::parse_json(value, key));
  }
  for (auto row = std::rbegin(kLargeKeys); row != std::rend(kLargeKeys); ++row) {
    const Config* found = config.find(row->theirs);
    if (found && !found->is_null()) ours.set(row->ours, *found);
  }
  ours.set("add_out_norm", std::ranges::any_of(tensors, [](const auto& named) { return named.first == kLastNorm; }));
  return ours;
}

Config original_config(const Config& config) {
  Config ours = new_config(kXlstm);
  for (const auto& [key, value] : config.as_object("config.json")) {
    if (key != "model_type") ours.set(key, value);
  }
  return ours;
}

}  // namespace

bool is_published_xlstm(const Config& config) {
  const Config* type = config.find("model_type");
  if (type) return type->is_string() && type->as_string("model_type") == "xlstm";
  return config.find("qk_dim_factor") || config.find("qkv_proj_blocksize") || config.find("slstm_at");
}

PublishedModel read_published_xlstm(const Config& config, const layers::NamedTensors& tensors, DType dtype,
                                    const std::string& where) {
  PublishedModel published;
  layers::NamedTensors renamed;
  for (const auto& [name, tensor] : tensors) {
    // Some files hold the norm of the heads as [heads, width of one].
    const bool per_head = name.ends_with("multihead_norm.weight") && tensor.rank() == 2;
    renamed.emplace_back(name == "backbone.embeddings.weight" ? "embedding.weight" : name,
                         per_head ? tensor.reshape({tensor.numel()}) : tensor);
    published.names.emplace_back(name, renamed.back().first);
  }
  const bool large = config.find("model_type") || config.find("qk_dim_factor");
  const Config ours = large ? large_config(config, renamed) : original_config(config);
  try {
    ConfigReader reader(ours, where);
    check_published_size(reader.integer("vocab_size", 256, 1, 1 << 24), reader.integer("num_blocks", 2, 1, 1 << 12),
                         reader.integer("embedding_dim", 64, 1, 1 << 20), renamed, where);
    published.model = make_xlstm(ours, Rng(0));
  } catch (const Error& error) {
    fail(error.code(), where, error.what());
  }
  const Config* tied = ours.find(large ? "tie_word_embeddings" : "tie_weights");
  fill_published(published, std::move(renamed), tied && tied->as_bool("tied"),
                 large ? "embedding.weight" : "token_embedding.weight", dtype, where);
  return published;
}

}  // namespace stepwell::models
