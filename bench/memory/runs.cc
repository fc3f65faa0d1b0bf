// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "bench/memory/runs.h"

#include <chrono>
#include <limits>

#include "stepwell/io/json.h"
#include "stepwell/memory/distillation.h"
#include "stepwell/models/model.h"
#include "stepwell/train/adam.h"
#include "stepwell/train/task.h"

namespace stepwell::bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double number(const Config* value) {
  return value && value->is_number() ? value->as_double("report") : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

Config base_recipe(const std::string& task, std::int64_t length, const std::string& mode, std::int64_t seed) {
  Config recipe;
  recipe.set_path("task.name", task);
  recipe.set_path("task.length", length);
  recipe.set_path("teacher.window", length);
  recipe.set_path("teacher.bound", "tanh");
  recipe.set_path("train.mode", mode);
  recipe.set_path("train.seed", seed);
  recipe.set_path("evaluate.sequences", 128);
  return recipe;
}

Trained distilled(Context& ctx, const Config& recipe) {
  memory::Distillation run(ctx, memory::DistillRecipe::read(recipe));
  const auto start = Clock::now();
  while (!run.done()) run.advance();
  Trained trained;
  trained.seconds = seconds_since(start);
  trained.report = run.report();
  return trained;
}

double error_at(const Config& report, std::int64_t times, const char* name) {
  for (const Config& row : report.find("errors")->as_array("report")) {
    if (row.find("times")->as_integer("report") == times) return number(row.find(name));
  }
  return std::numeric_limits<double>::quiet_NaN();
}

double drift_at(const Config& report, bool last, const char* name) {
  const auto& rows = report.find("drift")->as_array("report");
  if (rows.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  return number(rows[rows.size() - (last ? 1 : 2)].find(name));
}

std::vector<double> trained_mixer(Context& ctx, const std::string& mixer, const std::string& options,
                                  const std::string& task, std::int64_t length, std::int64_t steps, std::int64_t seed,
                                  const std::vector<std::int64_t>& times) {
  constexpr std::int64_t kBatch = 48, kHeldOut = 128;
  constexpr double kRate = 3e-3;
  Config config;
  config.set_path("data.task", task);
  config.set_path("data.held_out", kHeldOut);
  config.set_path("train.length", length);
  config.set_path("train.seed", seed);
  const train::Recipe recipe = train::Recipe::read(config);
  const auto sequences = train::make_task(recipe);
  Config shape;
  shape.set("width", 16);
  shape.set("layers", 1);
  shape.set("mixer", mixer);
  shape.set("mixer_options", io::parse_json(options, "options"));
  sequences->complete(shape);
  const auto model = models::make_model(shape, Rng(static_cast<std::uint64_t>(seed)).stream("model"));
  train::Adam adam(model->parameters(), {.clip_norm = 1});
  const auto start = Clock::now();
  for (std::int64_t step = 0; step < steps; ++step) {
    adam.step(ctx, backward(ctx, sequences->loss(ctx, *model, step * kBatch, kBatch, nullptr)), kRate);
  }
  std::vector<double> figures = {seconds_since(start)};
  for (const std::int64_t k : times) {
    train::Recipe longer = recipe;
    longer.length = k * length;
    figures.push_back(train::make_task(longer)->evaluate(ctx, *model, 0).front().second);
  }
  return figures;
}

}  // namespace stepwell::bench
