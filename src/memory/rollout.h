// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/core/rng.h"
#include "stepwell/memory/set_encoder.h"
#include "stepwell/memory/updater.h"

namespace stepwell::memory {

// The memories a cell goes through on its own, from its initial memory: x [B, T, d] → [B, T, Mem], after every token.
Tensor free_rollout(Context& ctx, const MemoryUpdater& cell, const Tensor& x);

struct RolloutOptions {
  double beta = 0;          // probability of going on from the teacher's memory at a step
  std::int64_t guard = 16;  // steps in a row at the clamp, or not finite, after which the teacher's memory takes over
};

// What imitation learns from: the memories the cell visits, and what the teacher says each should become.
struct Visits {
  Transitions transitions;    // of every token of every sequence, token by token
  std::int64_t restarts = 0;  // by the guard
};
Visits visit(Context& ctx, const MemoryUpdater& cell, const Tensor& x, const Tensor& teacher,
             const RolloutOptions& options, const Rng& rng);

// The teacher's own transitions on x: the first from the cell's initial memory.
Transitions teacher_transitions(Context& ctx, const MemoryUpdater& cell, const Tensor& x, const Tensor& teacher);

// Mean (a − b)² over all numbers; infinite if any is not finite.
double mean_square_difference(const Tensor& a, const Tensor& b);

}  // namespace stepwell::memory
