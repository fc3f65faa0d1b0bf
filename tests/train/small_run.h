// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "stepwell/core/config.h"
#include "stepwell/io/file.h"
#include "stepwell/io/json.h"
#include "stepwell/train/trainer.h"

// A run of a second or less that has everything that could go wrong on resuming: dropout, accumulation, warm-up, a
// decaying rate, evaluations and checkpoints at steps that do not divide one another.
namespace stepwell::train {

inline std::string small_text() {
  std::string text;
  for (int i = 0; i < 150; ++i)
    text += "line " + std::to_string(i * i) + " of the text, " + std::to_string(i % 7) + "\n";
  return text;
}

inline Recipe small_recipe(const std::string& text_file, std::int64_t steps) {
  Config config;
  config.set_path("data.text", text_file);
  config.set_path("model.width", 8);
  config.set_path("model.layers", 2);
  config.set_path("model.dropout", 0.1);
  config.set_path("model.mixer_options.d_state", 3);
  config.set_path("train.steps", steps);
  config.set_path("train.batch", 2);
  config.set_path("train.accumulate", 3);
  config.set_path("train.length", 11);
  config.set_path("train.warmup", 25);
  config.set_path("train.lr", 0.01);
  config.set_path("train.evaluate_every", 7);
  config.set_path("train.evaluate_most", 100);
  config.set_path("train.save_every", 10);
  return Recipe::read(config);
}

// Calls a function after every step.
class AfterStep : public Observer {
 public:
  explicit AfterStep(std::function<void(const StepMetrics&)> function) : function_(std::move(function)) {}
  void on_step(const StepMetrics& metrics) override { function_(metrics); }

 private:
  std::function<void(const StepMetrics&)> function_;
};

// Runs on until `last` steps are done, as Ctrl-C would stop it.
inline Outcome run_until(Trainer& trainer, std::int64_t last) {
  std::atomic<bool> stop{false};
  AfterStep observer([&](const StepMetrics& metrics) { stop = metrics.step == last; });
  return trainer.run(observer, stop);
}

// The bytes of every file of a folder, by name.
inline std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files[entry.path().filename().native()] = io::read_file(entry.path().native(), 1 << 24);
  }
  return files;
}

// What metrics.jsonl says, without the speed.
inline std::vector<Config> metrics_of(const std::string& run) {
  std::vector<Config> lines;
  const std::string text = io::read_file(io::join_path(run, "metrics.jsonl"), 1 << 24);
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    Config line = io::parse_json(std::string_view(text).substr(begin, end - begin), "metrics");
    if (line.find("tokens_per_second")) line.set("tokens_per_second", 0);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace stepwell::train
