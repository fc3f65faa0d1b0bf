// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "models/published.h"

#include <algorithm>
#include <optional>

#include "stepwell/io/json.h"
#include "stepwell/models/causal_lm.h"

#include "models/format.h"

namespace stepwell::models {

namespace {

constexpr std::string_view kEmbeddings = "backbone.embeddings.weight", kHead = "lm_head.weight";
constexpr std::int64_t kLargestVocabulary = 1 << 24;

const Config* find_path(const Config& config, std::string_view dotted) {
  const Config* found = &config;
  while (found && !dotted.empty()) {
    const auto dot = std::min(dotted.find('.'), dotted.size());
    found = found->find(dotted.substr(0, dot));
    dotted.remove_prefix(std::min(dot + 1, dotted.size()));
  }
  return found && !found->is_null() ? found : nullptr;
}

const Naming& naming_of(const Config& config, const std::string& where) {
  const Config* type = find_path(config, "model_type");
  const std::string model_type = type ? type->as_string("model_type") : "";
  std::string known;
  for (const Naming& naming : mamba_namings()) {
    const Config* only = naming.only.key.empty() ? nullptr : find_path(config, naming.only.key);
    const bool other = !naming.only.key.empty() && (!only || *only != io::parse_json(naming.only.value, "naming"));
    if (naming.model_type == model_type && find_path(config, naming.marker) && !other) return naming;
    known += (known.empty() ? "" : ", ") + std::string(naming.name) + " (" +
             (naming.model_type.empty() ? "" : "model_type " + std::string(naming.model_type) + ", ") +
             std::string(naming.marker) + ")";
  }
  fail(ErrorCode::Unsupported, where,
       (type ? "model_type = \"" + model_type + "\"" : std::string("no model_type")) +
           " with keys of no naming that this version reads: " + known);
}

// The parameter that the row says a tensor is; nothing if the row is of another tensor.
std::optional<std::string> renamed(std::string_view name, const NameRow& row) {
  const auto number_at = row.theirs.find("{i}");
  if (number_at == std::string_view::npos) {
    return name == row.theirs ? std::optional<std::string>(row.ours) : std::nullopt;
  }
  if (!name.starts_with(row.theirs.substr(0, number_at))) return std::nullopt;
  name.remove_prefix(number_at);
  const auto digits = std::min(name.find_first_not_of("0123456789"), name.size());
  const std::string number(name.substr(0, digits));
  name.remove_prefix(digits);
  std::string_view tail = row.theirs.substr(number_at + 3), rest;
  if (tail.ends_with('*')) {
    tail.remove_suffix(1);
    if (!name.starts_with(tail)) return std::nullopt;
    rest = name.substr(tail.size());
  } else if (name != tail) {
    return std::nullopt;
  }
  if (number.empty()) return std::nullopt;
  std::string ours(row.ours);
  ours.replace(ours.find("{i}"), 3, number);
  if (ours.ends_with('*')) ours.replace(ours.size() - 1, 1, rest);
  return ours;
}

// What a tensor is called here; its own name if no row knows it, which then fits no parameter.
std::string own_name(const std::string& name, const Naming& naming) {
  std::string_view bare = name;
  for (const std::string_view prefix : {"model.", "backbone."}) {
    if (bare.starts_with(prefix)) bare.remove_prefix(prefix.size());
  }
  for (const NameRow& row : naming.names) {
    if (auto ours = renamed(bare, row)) return *ours;
  }
  return name;
}

bool holds(const layers::NamedTensors& tensors, std::string_view name) {
  return std::ranges::any_of(tensors, [&](const auto& named) { return named.first == name; });
}

Tensor find_tensor(const layers::NamedTensors& tensors, std::string_view name) {
  const auto found =
      std::ranges::find(tensors, name, [](const auto& named) -> std::string_view { return named.first; });
  return found == tensors.end() ? Tensor() : found->second;
}

void round_up_vocabulary(const Config& config, const Naming& naming, Config& ours, const std::string& where) {
  if (naming.vocab_multiple == 1) return;
  ConfigReader theirs(config, where), read(ours, where);
  const std::int64_t multiple = theirs.integer("pad_vocab_size_multiple", naming.vocab_multiple, 1, kLargestVocabulary);
  const std::int64_t size = read.integer("vocab_size", 1, 1, kLargestVocabulary);
  ours.set("vocab_size", (size + multiple - 1) / multiple * multiple);
}

// Our configuration of the same model, from the keys and from which tensors there are.
CausalLMConfig own_config(const Config& config, const Naming& naming, const layers::NamedTensors& tensors,
                          const std::string& where) {
  for (const auto& [key, value] : naming.required) {
    const Config* found = find_path(config, key);
    if (!found || *found == io::parse_json(value, key)) continue;
    fail(ErrorCode::Unsupported, where,
         std::string(key) + " = " + io::to_json(*found, 0) + ", expected " + std::string(value) + ": the " +
             std::string(naming.name) + " models that this version computes have no other");
  }
  Config ours = new_config(kCausalLM);
  ours.set("mixer", std::string(naming.mixer));
  for (const auto& [key, value] : naming.values) ours.set_path(key, io::parse_json(value, key));
  std::string read_as, missing;
  for (auto row = naming.keys.rbegin(); row != naming.keys.rend(); ++row) {
    const Config* found = find_path(config, row->theirs);
    if (!found) continue;
    ours.set_path(row->ours, *found);
    if (row->theirs != row->ours) read_as += "; " + std::string(row->theirs) + " is read as " + std::string(row->ours);
  }
  for (const auto& [theirs, own] : naming.keys) {
    const bool vital = own == "width" || own == "layers" || own == "vocab_size";
    if (vital && !find_path(ours, own)) missing += (missing.empty() ? "" : ", ") + std::string(theirs);
  }
  if (!missing.empty()) fail(ErrorCode::Config, where, "without " + missing);
  for (const auto& [parameter, option] : naming.presence) ours.set_path(option, holds(tensors, parameter));
  try {
    round_up_vocabulary(config, naming, ours, where);
    return CausalLMConfig::read(ours);
  } catch (const Error& error) {
    fail(error.code(), where, error.what() + read_as);
  }
}

}  // namespace

void check_published_size(std::int64_t vocab_size, std::int64_t layers, std::int64_t width,
                          const layers::NamedTensors& tensors, const std::string& where) {
  constexpr std::int64_t kFree = 1 << 20;
  std::int64_t held = 0;
  for (const auto& [name, tensor] : tensors) held += tensor.numel();
  const std::int64_t least = (vocab_size + layers) * width;
  if (least <= held + kFree) return;
  fail(ErrorCode::Argument, where,
       "config.json is of a model with more than " + std::to_string(least) +
           " parameters, the tensors beside it hold " + std::to_string(held));
}

void fill_published(PublishedModel& published, layers::NamedTensors tensors, bool tied, std::string_view embedding,
                    DType dtype, const std::string& where) {
  std::string fault;  // beside those that set_named_parameters finds
  if (tied && holds(tensors, kHead)) {
    const Tensor head = find_tensor(tensors, kHead), embeddings = find_tensor(tensors, embedding);
    if (!embeddings.defined() || head.shape() != embeddings.shape() ||
        !head.to(dtype).same_bits(embeddings.to(dtype))) {
      fault = std::string(kHead) + " is another tensor than the embedding, to which config.json ties it";
    }
    std::erase_if(tensors, [](const auto& named) { return named.first == kHead; });
    std::erase_if(published.names, [](const auto& named) { return named.second == kHead; });
  }
  published.model->to(dtype);
  try {
    published.model->set_named_parameters(tensors);
  } catch (const Error& error) {
    fail(error.code(), where, error.what() + (fault.empty() ? "" : "; " + fault));
  }
  if (!fault.empty()) fail(ErrorCode::Argument, where, fault);
}

PublishedModel read_published(const Config& config, const layers::NamedTensors& tensors, DType dtype,
                              const std::string& where) {
  if (is_published_xlstm(config)) return read_published_xlstm(config, tensors, dtype, where);
  const Naming& naming = naming_of(config, where);
  PublishedModel published;
  layers::NamedTensors renamed_tensors;
  for (const auto& [name, tensor] : tensors) {
    renamed_tensors.emplace_back(own_name(name, naming), tensor);
    published.names.emplace_back(name, renamed_tensors.back().first);
  }
  const CausalLMConfig own = own_config(config, naming, renamed_tensors, where);
  check_published_size(own.vocab_size, own.backbone.layers, own.backbone.width, renamed_tensors, where);
  published.model = make_causal_lm(own, Rng(0));
  fill_published(published, std::move(renamed_tensors), own.tie_embeddings, kEmbeddings, dtype, where);
  return published;
}

}  // namespace stepwell::models
