// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepwell/models/model.h"

// Language models in the files that others publish them in. What a publisher calls things are rows of tables, one file
// of them per mixer (published_mamba.cc); a mixer that comes in a new naming adds rows, not code.
namespace stepwell::models {

// A member of their config.json and of our configuration, as dotted paths. Of several rows with the same `ours` the
// first that is present counts.
struct KeyRow {
  std::string_view theirs, ours;
};
// A value as JSON text: of our configuration, which the naming implies unless a key says otherwise; or of theirs, where
// any other value means a model that is computed in another way.
struct ValueRow {
  std::string_view key, value;
};
// A tensor and our parameter. {i} stands for a layer's number, a final * for the rest of the name. The file's names are
// compared without any leading "model." and "backbone.".
struct NameRow {
  std::string_view theirs, ours;
};
// An option of ours that is on if, and only if, the first layer has the parameter (ours).
struct PresenceRow {
  std::string_view parameter, option;
};

struct Naming {
  std::string_view name;        // for messages: "Hugging Face mamba"
  std::string_view model_type;  // of config.json; empty: it has none
  std::string_view marker;      // a key that every config.json of this naming has
  ValueRow only = {};           // a value of theirs without which it is another naming
  std::string_view mixer;       // of the registry
  std::int64_t vocab_multiple;  // vocab_size is rounded up to pad_vocab_size_multiple, by default this; 1: never
  std::span<const KeyRow> keys;
  std::span<const ValueRow> values, required;
  std::span<const PresenceRow> presence;
  std::span<const NameRow> names;
};

std::span<const Naming> mamba_namings();

struct PublishedModel {
  std::unique_ptr<Model> model;
  std::vector<std::pair<std::string, std::string>> names;  // of the file's tensors and the parameters they went to
};

// Builds the model that config.json and the tensors beside it describe, in F32 or F64. A head that is stored although
// it is tied must equal the embedding. Throws Error: Unsupported for a configuration of no known naming, or of a model
// that is computed in another way; Config for missing and wrong keys; Argument listing all names and shapes that do not
// fit. `where` names the source in messages.
PublishedModel read_published(const Config& config, const layers::NamedTensors& tensors, DType dtype,
                              const std::string& where);

// xLSTM's models have other blocks than a Backbone: their configurations are read by published_xlstm.cc.
bool is_published_xlstm(const Config& config);
PublishedModel read_published_xlstm(const Config& config, const layers::NamedTensors& tensors, DType dtype,
                                    const std::string& where);

// What the two have in common. Before a model is made: a few numbers in config.json must not ask for far more memory
// than the tensors warrant.
void check_published_size(std::int64_t vocab_size, std::int64_t layers, std::int64_t width,
                          const layers::NamedTensors& tensors, const std::string& where);
// Puts tensors under our names into published.model, converted to dtype; a head stored although it is tied to
// `embedding` is compared and dropped.
void fill_published(PublishedModel& published, layers::NamedTensors tensors, bool tied, std::string_view embedding,
                    DType dtype, const std::string& where);

}  // namespace stepwell::models
