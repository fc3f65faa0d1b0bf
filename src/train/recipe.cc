// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/recipe.h"

#include <array>
#include <filesystem>
#include <limits>
#include <string_view>

#include "stepwell/train/sequence_task.h"

namespace stepwell::train {

namespace {

constexpr std::array<std::string_view, 2> kDecays = {"constant", "cosine"};
constexpr std::int64_t kMost = std::int64_t{1} << 40;  // of anything counted: far from overflow in any product used

// A string or an array of strings.
std::vector<std::string> read_texts(const Config& value) {
  const char* where = "recipe [data] text";
  std::vector<std::string> texts;
  if (value.is_string()) {
    texts.push_back(value.as_string(where));
  } else {
    for (const Config& element : value.as_array(where)) texts.push_back(element.as_string(where));
  }
  return texts;
}

void read_data(const Config& config, Recipe& recipe) {
  ConfigReader data(config, "recipe [data]");
  if (data.has("text")) recipe.text = read_texts(*config.find("text"));
  recipe.csv = data.text("csv", "");
  recipe.column = data.text("column", "");
  recipe.hold_out = data.text("hold_out", "");
  recipe.hold_out_fraction = data.number("hold_out_fraction", recipe.hold_out_fraction, 0, 0.9);
  recipe.task = data.text("task", "");
  recipe.task_options = data.child("task_options");
  recipe.held_out = data.integer("held_out", recipe.held_out, 1, 1 << 24);
  data.finish();
  const int kinds = !recipe.text.empty() + !recipe.csv.empty() + !recipe.task.empty();
  if (kinds != 1) {
    fail(ErrorCode::Config, "recipe [data]",
         std::string(kinds == 0 ? "no text, csv or task" : "more than one of text, csv and task") +
             ", expected one of them");
  }
  if (recipe.csv.empty() != recipe.column.empty()) {
    fail(ErrorCode::Config, "recipe [data]", "csv and column go together, only one is given");
  }
  if (recipe.text.empty() && !recipe.hold_out.empty()) {
    fail(ErrorCode::Config, "recipe [data]",
         "hold_out names files and is for text; use hold_out_fraction with csv, held_out with task");
  }
  if (recipe.task.empty() && (data.has("task_options") || data.has("held_out"))) {
    fail(ErrorCode::Config, "recipe [data]", "task_options and held_out go with task, which is not given");
  }
}

void read_train(const Config& config, Recipe& recipe) {
  ConfigReader train(config, "recipe [train]");
  recipe.steps = train.integer("steps", recipe.steps, 0, kMost);
  recipe.batch = train.integer("batch", recipe.batch, 1, 1 << 20);
  recipe.accumulate = train.integer("accumulate", recipe.accumulate, 1, 1 << 20);
  recipe.length = train.integer("length", recipe.length, 1, 1 << 24);
  recipe.seed = train.integer("seed", recipe.seed, 0, std::numeric_limits<std::int64_t>::max());
  Schedule& schedule = recipe.schedule;
  schedule.peak = train.number("lr", schedule.peak, 0, 1e3);
  schedule.warmup = train.integer("warmup", schedule.warmup, 0, kMost);
  schedule.decay =
      static_cast<Decay>(train.choice("schedule", kDecays[static_cast<std::size_t>(schedule.decay)], kDecays));
  schedule.final_fraction = train.number("final_fraction", schedule.final_fraction, 0, 1);
  schedule.steps = recipe.steps;
  AdamOptions& adam = recipe.adam;
  adam.beta1 = train.number("beta1", adam.beta1, 0, 0.99999999);
  adam.beta2 = train.number("beta2", adam.beta2, 0, 0.99999999);
  adam.eps = train.number("eps", adam.eps, 1e-30, 1);
  adam.weight_decay = train.number("weight_decay", adam.weight_decay, 0, 1e3);
  adam.clip_norm = train.number("clip_norm", adam.clip_norm, 0, 1e9);
  recipe.evaluate_every = train.integer("evaluate_every", recipe.evaluate_every, 0, kMost);
  recipe.evaluate_most = train.integer("evaluate_most", recipe.evaluate_most, 0, kMost);
  recipe.save_every = train.integer("save_every", recipe.save_every, 1, kMost);
  train.finish();
}

std::string absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().native();
}

}  // namespace

Recipe Recipe::read(const Config& config) {
  Recipe recipe;
  ConfigReader reader(config, "recipe");
  const Config data = reader.child("data"), train = reader.child("train");
  recipe.model = reader.child("model");
  reader.finish();
  read_data(data, recipe);
  read_train(train, recipe);
  return recipe;
}

Config Recipe::to_config() const {
  Config data;
  if (!task.empty()) {
    data.set("task", task);
    data.set("task_options", make_sequence_task(task, task_options)->config());
    data.set("held_out", held_out);
  } else if (!csv.empty()) {
    data.set("csv", absolute(csv));
    data.set("column", column);
  } else {
    Config::Array paths;
    for (const std::string& path : text) paths.emplace_back(absolute(path));
    data.set("text", std::move(paths));
    if (!hold_out.empty()) data.set("hold_out", hold_out);
  }
  if (task.empty()) data.set("hold_out_fraction", hold_out_fraction);

  Config train;
  train.set("steps", steps);
  train.set("batch", batch);
  train.set("accumulate", accumulate);
  train.set("length", length);
  train.set("seed", seed);
  train.set("lr", schedule.peak);
  train.set("warmup", schedule.warmup);
  train.set("schedule", std::string(kDecays[static_cast<std::size_t>(schedule.decay)]));
  train.set("final_fraction", schedule.final_fraction);
  train.set("beta1", adam.beta1);
  train.set("beta2", adam.beta2);
  train.set("eps", adam.eps);
  train.set("weight_decay", adam.weight_decay);
  train.set("clip_norm", adam.clip_norm);
  train.set("evaluate_every", evaluate_every);
  train.set("evaluate_most", evaluate_most);
  train.set("save_every", save_every);

  Config recipe;
  recipe.set("data", std::move(data));
  recipe.set("model", model.is_null() ? Config(Config::Object{}) : model);
  recipe.set("train", std::move(train));
  return recipe;
}

}  // namespace stepwell::train
