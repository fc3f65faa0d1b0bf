// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "stepwell/memory/recipe.h"
#include "stepwell/memory/report.h"
#include "stepwell/memory/set_encoder.h"
#include "stepwell/memory/updater.h"
#include "stepwell/train/sequence_task.h"

#include "memory/transition_pool.h"

namespace stepwell::memory {

// Rounds of imitation (dataset aggregation, arXiv:1011.0686): in each the cell runs on its own memories, what it visits
// joins all that was visited before and the teacher's own transitions, and single steps are trained on draws from all
// of them. At the end the parameters with the least drift on validation sequences come back.
class Imitation {
 public:
  Imitation(Context& ctx, const DistillRecipe& recipe, const train::SequenceTask& task,
            const SetEncoderTeacher& teacher, MemoryUpdater& cell);

  std::int64_t steps() const { return options_.rounds * options_.steps; }
  // Training step number `step` of all rounds, with what comes before and after it in its round. False: no round after
  // this one, since there has been no progress for too long.
  bool advance(std::int64_t step, UpdateReport& report);
  double rate(std::int64_t step) const;  // of learning
  const std::vector<RoundReport>& rounds() const { return rounds_; }

  layers::NamedTensors state() const;
  void set_state(const layers::NamedTensors& state);

 private:
  Tensor sequences(const char* purpose, std::int64_t first, std::int64_t count) const;
  void begin();
  void begin_round(std::int64_t round);
  bool end_round(std::int64_t round);
  double drift() const;
  void remember_best();

  Context& ctx_;
  ImitationOptions options_;
  std::int64_t horizon_, seed_;
  const train::SequenceTask& task_;
  const SetEncoderTeacher& teacher_;
  MemoryUpdater& cell_;
  Rng rng_;
  TransitionPool pool_;
  Tensor validation_, validation_memory_;  // made when first needed
  layers::NamedTensors best_;
  double best_drift_ = 0;
  std::vector<RoundReport> rounds_;
  double loss_sum_ = 0;  // of the round so far
  std::int64_t skipped_ = 0, restarts_ = 0;
};

}  // namespace stepwell::memory
