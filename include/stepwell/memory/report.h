// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// What a distillation reports. report.json in its run folder holds one object (figures that are not finite are null):
//
//   "format": "stepwell-distillation-1"
//   "recipe": the whole recipe, as DistillRecipe::to_config()
//   "task": {"name", "answer": "value" | "sign", "length"}
//   "cell": {"type", "memory_width", "parameters", "context"}
//   "steps": training steps done
//   "losses": [{"step", "phase": "teacher" | "cloning" | "joint" | "bptt" | "imitation", "loss", …}]
//       at most 400 of them, evenly spread over the run. Besides the loss that was minimised: "dec", "dyn",
//       "dyn_over_variance" and "unif" (joint), "memory" and "readout" (cloning), "memory" (imitation)
//   "memory": {"variance", "contraction"}
//       the variance of the teacher's memory on held-out sequences (mean over its entries), which drift and dyn are
//       compared with; and MemoryUpdater::contraction_estimate() over held-out memories. Without a teacher (bptt) the
//       variance is null
//   "rounds": [{"round", "drift", "drift_over_variance", "memory_loss", "accepted", "visited", "restarts", "skipped"}]
//       round 0 is the cell before imitation; drift on validation sequences after the round; accepted: the least so
//       far. Rounds after the last accepted one are rolled back
//   "drift": [{"first", "last", "drift", "over_variance", "student", "teacher"}]
//       steps first … last (from 1) of roll-outs on held-out sequences: mean (cell's memory − teacher's)², the same by
//       variance, and both's prediction errors (mean square; null where nothing is asked). The last two entries are
//       steps 1 … window and the last 100 steps (or a quarter, if that is less)
//   "errors": [{"times", "length", "sequences", "measure": "mse" | "accuracy", "student", "student_before_refit",
//               "teacher", baselines by name …}]
//       on held-out sequences of `times` times the task's length
//   "trajectories": {"teacher": [[…]…], "student": [[…]…], "target": [[…]…], "teacher_prediction": [[…]…],
//                    "student_prediction": [[…]…]}
//       one held-out sequence, token by token: memories and predictions; a target is [] where nothing is asked
// "teacher" figures are missing in mode bptt, "rounds" and "drift" are then empty.
namespace stepwell::memory {

inline constexpr const char* kReportFormat = "stepwell-distillation-1";
inline constexpr const char* kReportFile = "report.json";

// One round of imitation.
struct RoundReport {
  double drift = 0;        // on validation sequences, after it
  double memory_loss = 0;  // mean over its steps
  bool accepted = true;    // the least drift so far; what comes after the last of these is rolled back
  std::int64_t visited = 0, restarts = 0, skipped = 0;
};

}  // namespace stepwell::memory
