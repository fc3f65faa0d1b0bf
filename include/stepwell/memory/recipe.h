// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepwell/core/config.h"
#include "stepwell/train/schedule.h"

namespace stepwell::memory {

// How the cell learns: Frozen: the teacher first, then the cell from a teacher that no longer moves; Joint: both at
// once, the teacher towards memories that a step can follow; Bptt: the same cell by back-propagation through time,
// without a teacher (the control).
enum class DistillMode { Frozen, Joint, Bptt };

// The rounds after that: the cell runs on its own memories, the teacher says what they should have become.
struct ImitationOptions {
  std::int64_t rounds = 20;
  std::int64_t horizon = 0;     // steps of a roll-out; 0: the task's length
  std::int64_t sequences = 64;  // rolled out in a round, and as many for the teacher's own transitions
  std::int64_t steps = 100;     // of training in a round
  std::int64_t batch = 128;
  double lr = 1e-3;                   // falls by half a cosine wave to a tenth of it
  double beta = 0, beta_decay = 0.5;  // round i goes on from the teacher's memory with probability beta·beta_decay^i
  std::int64_t capacity = 65536;      // transitions kept of all roll-outs (the teacher's own are kept beside)
  // Rounds go on from where the last one ended, better or worse: the first ones often make a good cell worse, and only
  // what the worse one visits mends it. At the end the best parameters come back (at once, when a round's drift is not
  // finite).
  bool keep_best = true;
  std::int64_t patience = 0;  // rounds without a new best before the end; 0: all rounds
  std::int64_t guard = 16;    // steps at the clamp, or not finite, after which a roll-out starts again
  std::int64_t validation_sequences = 32;
  bool refit = true;    // the readout in closed form on visited memories, afterwards
  double ridge = 1e-4;  // its penalty, as a part of the mean square of the memories; above 0, for any rank of theirs
};

struct DistillRecipe {
  // [task]: name and length, the rest are the task's options
  std::string task;
  std::int64_t length = 0;
  Config task_options;
  // [teacher]: options of SetEncoderConfig but memory_width
  Config teacher;
  // [cell]: type and memory_width (0: the cell's own default), the rest are the cell's options
  std::string cell = "gated";
  std::int64_t memory_width = 0;
  Config cell_options;
  // [train]
  DistillMode mode = DistillMode::Joint;
  std::int64_t seed = 0;
  std::int64_t steps = 2000;
  std::int64_t teacher_steps = 1000;  // before them, mode frozen
  std::int64_t batch = 48;            // transitions, one of each sequence; bptt: sequences
  train::Schedule schedule{.peak = 3e-3};
  double event_share = 0.25;  // of the transitions at the token that decides the answer, where there is one
  // The teacher's memory is to predict this many answers ahead; the cell's readout predicts the first of them. More
  // than one makes a memory hold what is asked for later.
  std::int64_t horizon = 1;
  double decoding = 1, dynamics = 1, uniformity = 1e-3;  // weights of the joint loss
  bool detach = false;                                   // joint: keep the dynamics' gradient from the teacher
  std::int64_t save_every = 500;
  // [imitation]
  ImitationOptions imitation;
  // [evaluate]
  std::int64_t evaluate_sequences = 64;
  std::vector<std::int64_t> times = {1, 2, 4};  // lengths to judge by, as multiples of the task's
  std::int64_t drift_length = 0;                // steps of the drift's table; 0: four times the task's length

  // Unknown keys and values out of range throw Error (Config). Everything a task, a teacher or a cell refuses is
  // refused when the run is made.
  static DistillRecipe read(const Config& config);
  Config to_config() const;  // what read() takes, every option spelled out
};

}  // namespace stepwell::memory
