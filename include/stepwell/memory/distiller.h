// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "stepwell/memory/distillation.h"
#include "stepwell/train/trainer.h"

namespace stepwell::memory {

// Told what happens, on the calling thread. Does nothing by itself.
class DistillObserver {
 public:
  virtual ~DistillObserver() = default;
  virtual void on_step(const DistillStep& /*step*/, std::int64_t /*planned*/) {}
  virtual void on_round(std::int64_t /*round*/, const RoundReport& /*report*/) {}
};

// A distillation and its run folder:
//   recipe.json                      the recipe as run, complete, with "kind": "distill"
//   metrics.jsonl                    a line per step
//   checkpoints/step-00000500/       distillation.safetensors, sealed: Distillation::state()
//   report.json                      at the end (report.h)
// A run that is stopped, or killed at any moment, and resumed ends with the same bytes in its last checkpoint and its
// report as one that is not, for any number of threads.
class Distiller {
 public:
  // Starts a run in `folder`, which must not hold one; throws Error for whatever is wrong before any work.
  static Distiller start(Context& ctx, const DistillRecipe& recipe, const std::string& folder);
  // Goes on from the newest checkpoint of the run in `folder`, or from its beginning if it has none.
  static Distiller resume(Context& ctx, const std::string& folder);

  Distiller(Distiller&&) noexcept;
  ~Distiller();

  // Trains to the end and writes the report. When `stop` becomes true, finishes the step at hand, saves a checkpoint
  // and returns Interrupted.
  train::Outcome run(DistillObserver& observer, const std::atomic<bool>& stop);

  const Distillation& distillation() const;
  const Config& report() const;  // of a finished run

 private:
  struct Impl;
  explicit Distiller(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepwell::memory
