// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/memory/recipe.h"
#include "stepwell/memory/set_encoder.h"
#include "stepwell/memory/updater.h"

#include "memory/examples.h"

// The losses that train teacher and cell.
namespace stepwell::memory {

// A teacher's memories before and after the tokens of a draw, differentiable: [B, Mem] each. Before a sequence's first
// token stands the cell's initial memory.
struct MemoryPair {
  Variable before, after;
};
MemoryPair encode_pairs(Context& ctx, const SetEncoderTeacher& teacher, const MemoryUpdater& cell, const Draw& draw);
// The memories after the tokens alone.
Variable encode_after(Context& ctx, const SetEncoderTeacher& teacher, const Draw& draw);

// Mean (prediction − answer)² over the answers there are: those that are NaN count for nothing.
Variable answer_loss(Context& ctx, const Variable& prediction, const Tensor& answers);

struct JointLoss {
  Variable total;
  double decoding = 0, dynamics = 0, uniformity = 0;
  double variance = 0;  // of the memories after the tokens, over the draw, mean of their entries
};
JointLoss joint_loss(Context& ctx, const SetEncoderTeacher& teacher, const MemoryUpdater& cell, const Draw& draw,
                     const DistillRecipe& recipe);

// log mean exp(−2 |u_i − u_j|²) over pairs i ≠ j of rows of x [B, n], u the rows at length 1 (arXiv:2005.10242).
Variable uniformity_loss(Context& ctx, const Variable& x);

// Mean square error of the readout where something is asked, the cell unrolled over the whole batch.
Variable unrolled_loss(Context& ctx, const MemoryUpdater& cell, const train::SequenceBatch& batch);

// Variance of the rows of x [n, width] (or more dimensions, folded), mean over its columns.
double mean_variance(const Tensor& x);

}  // namespace stepwell::memory
