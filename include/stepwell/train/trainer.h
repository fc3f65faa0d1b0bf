// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "stepwell/core/context.h"
#include "stepwell/models/model.h"
#include "stepwell/train/recipe.h"
#include "stepwell/train/task.h"

namespace stepwell::train {

// One finished step, as metrics.jsonl has it.
struct StepMetrics {
  std::int64_t step = 0;  // steps done, 1 … recipe.steps
  double loss = 0, lr = 0, gradient_norm = 0;
  std::int64_t skipped = 0;      // steps skipped so far, since their loss or gradient was not finite
  double tokens_per_second = 0;  // of this step
};

// Told what happens, on the calling thread. Does nothing by itself.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_step(const StepMetrics&) {}
  virtual void on_evaluation(std::int64_t /*step*/, const Figures&) {}
  virtual void on_checkpoint(std::int64_t /*step*/, const std::string& /*folder*/) {}
};

enum class Outcome { Finished, Interrupted };

// A training run and its folder:
//   recipe.json                      the recipe as run, complete
//   metrics.jsonl                    a line per step and per evaluation
//   checkpoints/step-00000100/       config.json, model.safetensors (as models::save_model), training.safetensors
// A checkpoint appears whole or not at all, and the one before it stays: whenever the process dies, one can be loaded.
// A run that is stopped and resumed ends with the same bytes in its last checkpoint as one that is not (X4), for any
// number of threads.
class Trainer {
 public:
  // Starts a run in `folder`, which must not hold one nor lie among the recipe's texts. Everything that can be wrong
  // (recipe, data, model options, folder) is found here, before any work, and throws Error.
  static Trainer start(Context& ctx, Recipe recipe, const std::string& folder);
  // Goes on from the newest checkpoint of the run in `folder`, or from its beginning if it has none. Throws Error if
  // there is no run, its data have changed, or another process is training it.
  static Trainer resume(Context& ctx, const std::string& folder);

  Trainer(Trainer&&) noexcept;
  ~Trainer();

  // Trains to the end. When `stop` becomes true, finishes the step at hand, saves a checkpoint and returns Interrupted.
  // Throws Error when something cannot be written.
  Outcome run(Observer& observer, const std::atomic<bool>& stop);

  const Recipe& recipe() const;
  const models::Model& model() const;
  const Task& task() const;
  std::int64_t step() const;  // steps done

 private:
  struct Impl;
  explicit Trainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The folder to look into: `path` itself if it holds a config.json, else the newest checkpoint of the run in it, which
// may be a distillation. Throws Error (File) for anything else.
std::string newest_checkpoint(const std::string& path);

// The same, to load a model from. Throws Error (File) for a distillation too.
std::string model_folder(const std::string& path);

// Throws Error (File) unless `task` has the data that `checkpoint` was trained on; a checkpoint without
// training.safetensors passes.
void check_data(const std::string& checkpoint, const Task& task);

// The recipe of the run in `folder`.
Recipe load_recipe(const std::string& folder);

}  // namespace stepwell::train
