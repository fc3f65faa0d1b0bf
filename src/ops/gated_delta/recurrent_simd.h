// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/core/arena.h"

#include "ops/gated_delta/delta_head.h"

namespace stepwell::ops {

// Tokens that pass over a strip of the state before the next strip begins; divides kCheckpointTokens.
inline constexpr std::int64_t kDeltaTile = 32;

// A tile of tokens of one value head, over `units` units of its state from unit `first_unit` on.
template <class T>
struct DeltaTileWork {
  DeltaHead<T> head;
  std::int64_t first, tokens;  // first token, counted from that of `head`
  std::int64_t next_tokens;    // of the next tile; fetched on the way
  T* state;                    // [units, K, 16]
  std::int64_t first_unit, units;
  HeadRows<T> o;                // [tokens, V] from the head's first token on; null: not wanted
  HeadRows<const T> o_factors;  // of the rows of o, a number each; null: none
};
void run_recurrent_tile(const DeltaTileWork<float>& work, Arena& scratch);
void run_recurrent_tile(const DeltaTileWork<double>& work, Arena& scratch);

// Σ x² over n numbers.
float sum_squares(const float* x, std::int64_t n);
double sum_squares(const double* x, std::int64_t n);

}  // namespace stepwell::ops
