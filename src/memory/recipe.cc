// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/recipe.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace stepwell::memory {

namespace {

constexpr std::array<std::string_view, 3> kModes = {"frozen", "joint", "bptt"};
constexpr std::array<std::string_view, 2> kDecays = {"constant", "cosine"};
constexpr std::int64_t kMost = std::int64_t{1} << 40, kMostLength = 1 << 20;

// The members of an object but these.
Config without(const Config& config, std::initializer_list<std::string_view> keys) {
  Config::Object rest;
  if (config.is_null()) return rest;
  for (const auto& [key, value] : config.as_object("recipe")) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) rest.emplace_back(key, value);
  }
  return rest;
}

// Reads keys of a section whose other keys are somebody else's options.
template <class F>
void read_own(const Config& config, const char* where, std::initializer_list<std::string_view> keys, F read) {
  Config::Object own;
  if (!config.is_null()) {
    for (const auto& [key, value] : config.as_object(where)) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) own.emplace_back(key, value);
    }
  }
  ConfigReader reader(Config(std::move(own)), where);
  read(reader);
  reader.finish();
}

void read_train(const Config& config, DistillRecipe& r) {
  ConfigReader train(config, "recipe [train]");
  r.mode = static_cast<DistillMode>(train.choice("mode", kModes[static_cast<std::size_t>(r.mode)], kModes));
  r.seed = train.integer("seed", r.seed, 0, std::numeric_limits<std::int64_t>::max());
  r.steps = train.integer("steps", r.steps, 0, kMost);
  r.teacher_steps = train.integer("teacher_steps", r.teacher_steps, 0, kMost);
  r.batch = train.integer("batch", r.batch, 2, 1 << 20);
  r.schedule.peak = train.number("lr", r.schedule.peak, 0, 1e3);
  r.schedule.warmup = train.integer("warmup", r.schedule.warmup, 0, kMost);
  r.schedule.decay =
      static_cast<train::Decay>(train.choice("schedule", kDecays[static_cast<std::size_t>(r.schedule.decay)], kDecays));
  r.schedule.final_fraction = train.number("final_fraction", r.schedule.final_fraction, 0, 1);
  r.schedule.steps = r.steps;
  r.event_share = train.number("event_share", r.event_share, 0, 1);
  r.horizon = train.integer("horizon", r.horizon, 1, kMostLength);
  r.decoding = train.number("decoding", r.decoding, 0, 1e6);
  r.dynamics = train.number("dynamics", r.dynamics, 0, 1e6);
  r.uniformity = train.number("uniformity", r.uniformity, 0, 1e6);
  r.detach = train.boolean("detach", r.detach);
  r.save_every = train.integer("save_every", r.save_every, 1, kMost);
  train.finish();
}

void read_imitation(const Config& config, ImitationOptions& o) {
  ConfigReader reader(config, "recipe [imitation]");
  o.rounds = reader.integer("rounds", o.rounds, 0, 1 << 20);
  o.horizon = reader.integer("horizon", o.horizon, 0, kMostLength);
  o.sequences = reader.integer("sequences", o.sequences, 1, 1 << 20);
  o.steps = reader.integer("steps", o.steps, 1, kMost);
  o.batch = reader.integer("batch", o.batch, 1, 1 << 20);
  o.lr = reader.number("lr", o.lr, 0, 1e3);
  o.beta = reader.number("beta", o.beta, 0, 1);
  o.beta_decay = reader.number("beta_decay", o.beta_decay, 0, 1);
  o.capacity = reader.integer("capacity", o.capacity, 1, 1 << 26);
  o.keep_best = reader.boolean("keep_best", o.keep_best);
  o.patience = reader.integer("patience", o.patience, 0, 1 << 20);
  o.guard = reader.integer("guard", o.guard, 1, kMostLength);
  o.validation_sequences = reader.integer("validation_sequences", o.validation_sequences, 1, 1 << 20);
  o.refit = reader.boolean("refit", o.refit);
  o.ridge = reader.number("ridge", o.ridge, 1e-9, 1e6);
  reader.finish();
}

void read_evaluate(const Config& config, DistillRecipe& r) {
  ConfigReader reader(config, "recipe [evaluate]");
  r.evaluate_sequences = reader.integer("sequences", r.evaluate_sequences, 1, 1 << 20);
  r.drift_length = reader.integer("drift_length", r.drift_length, 0, kMostLength);
  const Config times = reader.list("times");
  if (!times.is_null()) {
    r.times.clear();
    for (const Config& k : times.as_array("recipe [evaluate] times")) {
      r.times.push_back(k.as_integer("recipe [evaluate] times"));
      if (r.times.back() < 1 || r.times.back() > 1024) reader.reject("times", "whole numbers from 1 to 1024");
    }
  }
  reader.finish();
}

// A section of own keys followed by the options of what it describes.
Config joined(Config::Object own, const Config& options) {
  if (!options.is_null()) {
    for (const auto& member : options.as_object("recipe")) own.push_back(member);
  }
  return own;
}

}  // namespace

DistillRecipe DistillRecipe::read(const Config& config) {
  DistillRecipe r;
  ConfigReader reader(config, "recipe");
  const Config task = reader.child("task"), cell = reader.child("cell"), train = reader.child("train"),
               imitation = reader.child("imitation"), evaluate = reader.child("evaluate");
  r.teacher = without(reader.child("teacher"), {});
  reader.finish();
  read_own(task, "recipe [task]", {"name", "length"}, [&r](ConfigReader& own) {
    r.task = own.text("name", "");
    if (r.task.empty()) own.reject("name", "the name of a task");
    r.length = own.integer("length", 96, 2, kMostLength);
  });
  r.task_options = without(task, {"name", "length"});
  read_own(cell, "recipe [cell]", {"type", "memory_width"}, [&r](ConfigReader& own) {
    r.cell = own.text("type", r.cell);
    r.memory_width = own.integer("memory_width", 0, 1, kMostLength);
  });
  r.cell_options = without(cell, {"type", "memory_width"});
  if (r.teacher.find("memory_width")) {
    fail(ErrorCode::Config, "recipe [teacher]", "memory_width is the cell's: set it in [cell]");
  }
  read_train(train, r);
  read_imitation(imitation, r.imitation);
  read_evaluate(evaluate, r);
  return r;
}

Config DistillRecipe::to_config() const {
  Config::Object cell_own = {{"type", cell}};
  if (memory_width > 0) cell_own.emplace_back("memory_width", memory_width);
  const Config train = Config::Object{{"mode", std::string(kModes[static_cast<std::size_t>(mode)])},
                                      {"seed", seed},
                                      {"steps", steps},
                                      {"teacher_steps", teacher_steps},
                                      {"batch", batch},
                                      {"lr", schedule.peak},
                                      {"warmup", schedule.warmup},
                                      {"schedule", std::string(kDecays[static_cast<std::size_t>(schedule.decay)])},
                                      {"final_fraction", schedule.final_fraction},
                                      {"event_share", event_share},
                                      {"horizon", horizon},
                                      {"decoding", decoding},
                                      {"dynamics", dynamics},
                                      {"uniformity", uniformity},
                                      {"detach", detach},
                                      {"save_every", save_every}};
  const ImitationOptions& o = imitation;
  const Config rounds = Config::Object{{"rounds", o.rounds},
                                       {"horizon", o.horizon},
                                       {"sequences", o.sequences},
                                       {"steps", o.steps},
                                       {"batch", o.batch},
                                       {"lr", o.lr},
                                       {"beta", o.beta},
                                       {"beta_decay", o.beta_decay},
                                       {"capacity", o.capacity},
                                       {"keep_best", o.keep_best},
                                       {"patience", o.patience},
                                       {"guard", o.guard},
                                       {"validation_sequences", o.validation_sequences},
                                       {"refit", o.refit},
                                       {"ridge", o.ridge}};
  Config::Array multiples;
  for (const std::int64_t k : times) multiples.emplace_back(k);
  const Config evaluate = Config::Object{
      {"sequences", evaluate_sequences}, {"times", std::move(multiples)}, {"drift_length", drift_length}};
  return Config::Object{{"task", joined({{"name", task}, {"length", length}}, task_options)},
                        {"teacher", teacher},
                        {"cell", joined(std::move(cell_own), cell_options)},
                        {"train", train},
                        {"imitation", rounds},
                        {"evaluate", evaluate}};
}

}  // namespace stepwell::memory
