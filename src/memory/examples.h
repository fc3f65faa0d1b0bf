// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "stepwell/core/rng.h"
#include "stepwell/memory/updater.h"
#include "stepwell/ops/pooled_attention.h"
#include "stepwell/train/sequence_task.h"

// Single transitions cut out of sequences.
namespace stepwell::memory {

// The next `horizon` answers that are asked for, at token t or later, one after the other: [B, T, horizon·out]; NaN
// after the last question.
Tensor next_answers(const train::SequenceBatch& batch, std::int64_t horizon = 1);

// The last `context` tokens up to token t of every sequence, zeros before the first: x [B, T, d] → [B, context, d].
Tensor tokens_at(const Tensor& x, std::int64_t t, std::int64_t context);

// One transition of every sequence of a batch, and the windows its teacher sees.
struct Draw {
  Tensor rows;                          // [rows, d]: the tokens of all windows
  std::vector<ops::RowWindow> windows;  // [2B]: before and after the token, in turn
  Tensor tokens;                        // [B, context, d]
  Tensor answers;                       // [B, horizon·out], NaN after the last question
  std::vector<bool> first;              // [B]: the token is a sequence's first; the window before it stands for nothing
};

// The token of sequence i is decided by (rng, first + i): uniform among those with a question still to come, or with
// probability `event_share` the one that decides the answer. Windows have at most `window` tokens.
struct DrawOptions {
  std::int64_t window, context;
  double event_share = 0;
  std::int64_t horizon = 1;
};
Draw draw_transitions(const train::SequenceBatch& batch, const DrawOptions& options, const Rng& rng,
                      std::int64_t first);

}  // namespace stepwell::memory
