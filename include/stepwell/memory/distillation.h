// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "stepwell/memory/recipe.h"
#include "stepwell/memory/report.h"
#include "stepwell/memory/set_encoder.h"
#include "stepwell/memory/updater.h"
#include "stepwell/train/sequence_task.h"

namespace stepwell::memory {

// What one step of a distillation did.
struct DistillStep {
  std::int64_t step = 0;  // steps done
  std::string_view phase;
  double loss = 0, lr = 0, gradient_norm = 0;
  bool skipped = false;
  train::Figures parts;  // of the loss, as report.h names them
};

// A distillation without its files (Distiller has them): a teacher and a cell on a task, trained step by step as the
// recipe says. The same recipe gives the same bits on every run, for any number of threads, in one process or in many
// that hand state() on.
class Distillation {
 public:
  // Throws Error for whatever task, teacher and cell refuse.
  Distillation(Context& ctx, const DistillRecipe& recipe);
  // With a task of one's own, and a cell of one's own (null: the recipe's); recipe.task and recipe.cell are then names
  // for people.
  Distillation(Context& ctx, const DistillRecipe& recipe, std::unique_ptr<train::SequenceTask> task,
               std::unique_ptr<MemoryUpdater> cell = nullptr);
  ~Distillation();

  const DistillRecipe& recipe() const;
  const train::SequenceTask& task() const;
  const MemoryUpdater& cell() const;
  const SetEncoderTeacher* teacher() const;  // null: mode bptt

  std::int64_t steps() const;  // planned; imitation may end sooner
  std::int64_t step() const;   // done
  bool done() const;
  // One training step; only while not done(). The last one refits the readout, if the recipe says so.
  DistillStep advance();
  const std::vector<RoundReport>& rounds() const;

  // Parameters, optimisers, roll-outs and where the run stands.
  layers::NamedTensors state() const;
  void set_state(const layers::NamedTensors& state);

  // The report but for "losses", measured now on held-out sequences; in Mode::Exact.
  Config report() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepwell::memory
