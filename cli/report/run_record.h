// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepwell/train/recipe.h"
#include "stepwell/train/task.h"

namespace stepwell::cli {

// What a run of `stepwell train` left in its folder: the recipe, and metrics.jsonl by columns.
struct RunRecord {
  std::string path, name;  // the folder, and its last part
  train::Recipe recipe;
  std::vector<double> step, loss, lr, gradient_norm, tokens_per_second;  // NaN where a step's was not finite
  std::int64_t skipped = 0;
  struct Evaluation {
    double step;
    train::Figures figures;  // as a Task gives them: to judge by, of rivals, how much was measured
  };
  std::vector<Evaluation> evaluations;
  std::int64_t parameters = 0;  // of the newest checkpoint; 0 if there is none
};

// Throws Error (File) for a folder without a run, and for metrics that are malformed but for a torn last line.
RunRecord read_run(const std::string& path);

// The last part of a path.
std::string folder_name(const std::string& path);

// "task regimes, sequences of 64 tokens"; what is trained on, and how it is cut. And "2 layers of mamba, width 64".
std::string data_of(const train::Recipe& recipe);
std::string model_of(const train::Recipe& recipe);

}  // namespace stepwell::cli
