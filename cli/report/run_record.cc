// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/report/run_record.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

#include "stepwell/core/error.h"
#include "stepwell/io/file.h"
#include "stepwell/io/json.h"
#include "stepwell/models/model.h"
#include "stepwell/train/trainer.h"

namespace stepwell::cli {

namespace {

// A number of a line of metrics; NaN for null or nothing.
double number_in(const Config& line, const char* key, const std::string& path) {
  const Config* value = line.find(key);
  return value && !value->is_null() ? value->as_double(path) : std::nan("");
}

void read_line(const Config& line, const std::string& path, RunRecord& run) {
  const double step = number_in(line, "step", path);
  if (const Config* held_out = line.find("held_out")) {
    RunRecord::Evaluation evaluation{step, {}};
    for (const auto& [name, value] : held_out->as_object(path)) {
      evaluation.figures.emplace_back(name, number_in(*held_out, name.c_str(), path));
    }
    run.evaluations.push_back(std::move(evaluation));
    return;
  }
  run.step.push_back(step);
  run.loss.push_back(number_in(line, "loss", path));
  run.lr.push_back(number_in(line, "lr", path));
  run.gradient_norm.push_back(number_in(line, "gradient_norm", path));
  run.tokens_per_second.push_back(number_in(line, "tokens_per_second", path));
  if (const Config* skipped = line.find("skipped")) run.skipped = skipped->as_integer(path);
}

}  // namespace

std::string folder_name(const std::string& path) {
  std::filesystem::path folder = std::filesystem::absolute(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  return folder.filename().native();
}

RunRecord read_run(const std::string& path) {
  RunRecord run;
  run.path = path;
  run.name = folder_name(path);
  run.recipe = train::load_recipe(path);
  const std::string file = io::join_path(path, "metrics.jsonl");
  if (io::file_exists(file)) {
    const std::string text = io::read_file(file, std::numeric_limits<std::int64_t>::max());
    for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      read_line(io::parse_json(std::string_view(text).substr(begin, end - begin), file), file, run);
    }
  }
  try {
    run.parameters = models::load_model(train::model_folder(path))->parameter_count();
  } catch (const Error&) {
    // A run without a checkpoint has metrics all the same.
  }
  return run;
}

std::string data_of(const train::Recipe& recipe) {
  const std::string length = std::to_string(recipe.length);
  if (!recipe.task.empty()) return "task " + recipe.task + ", sequences of " + length + " tokens";
  if (!recipe.csv.empty()) {
    return "column " + recipe.column + " of " + folder_name(recipe.csv) + ", windows of " + length + " values";
  }
  std::string files;
  for (const std::string& file : recipe.text) files += (files.empty() ? "" : ", ") + folder_name(file);
  return "text of " + files + ", windows of " + length + " bytes";
}

std::string model_of(const train::Recipe& recipe) {
  const auto option = [&](const char* key) {
    const Config* value = recipe.model.find(key);
    return !value ? std::string("?") : value->is_string() ? value->as_string(key) : io::to_json(*value, 0);
  };
  return option("layers") + (option("layers") == "1" ? " layer of " : " layers of ") + option("mixer") + ", width " +
         option("width");
}

}  // namespace stepwell::cli
