// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepwell/autograd/variable.h"
#include "stepwell/core/context.h"
#include "stepwell/core/rng.h"
#include "stepwell/models/model.h"
#include "stepwell/train/recipe.h"

namespace stepwell::train {

// Named numbers in order. Those of a Task: the one to judge by, the same of simple rivals, how much it was measured on.
using Figures = std::vector<std::pair<std::string, double>>;

// What a run trains on and is judged by. Training windows are numbered 0, 1, 2, … over the whole run, each decided by
// (seed, number) alone: a run resumes by going on counting.
class Task {
 public:
  virtual ~Task() = default;

  // The types of models that can be trained on it, the one meant where nothing is said first.
  virtual std::vector<std::string_view> model_types() const = 0;
  // Adds to a model's configuration what the data decide.
  virtual void complete(Config& model) const {
    if (!model.find("type")) model.set("type", std::string(model_types().front()));
  }
  // Mean loss over windows first … first+count−1.
  virtual Variable loss(Context& ctx, const models::Model& model, std::int64_t first, std::int64_t count,
                        const Rng* dropout_rng) const = 0;
  // Figures of the held-out part, at most `most` tokens of it (0: all), read in one pass with the state carried along;
  // in whatever mode ctx has, without recording. Empty when nothing is held out.
  virtual Figures evaluate(Context& ctx, const models::Model& model, std::int64_t most) const = 0;
  // BLAKE3 of all data, in hex.
  virtual std::string fingerprint() const = 0;
  // How much there is to train on and how much is held out, for people.
  virtual std::string describe() const = 0;
};

// Reads the recipe's data. Throws Error (File) when they are missing, malformed or too little for one window, and Error
// (Config) for an unknown task by name or option of one.
std::unique_ptr<Task> make_task(const Recipe& recipe);

// Bits that a model over bytes needs for `document`, read from its first byte on as if a newline stood before it.
// Throws Error (Unsupported) for a model over anything else.
double document_bits(Context& ctx, const models::Model& model, std::string_view document);

}  // namespace stepwell::train
