// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/core/rng.h"
#include "stepwell/core/tensor.h"

// Multi-query associative recall: `pairs` of a key and a value, all keys different, then every key once more in random
// order; at each of those the value that stood behind it is to be said. Keys are tokens 0 … keys−1, values the rest.
namespace recall {

struct Task {
  std::int64_t pairs = 16, keys = 64, values = 64;

  std::int64_t length() const { return 3 * pairs; }
  std::int64_t vocab_size() const { return keys + values; }
};

struct Batch {
  stepwell::Tensor tokens;   // I64 [count, length]
  stepwell::Tensor targets;  // I64 [count · length], −100 where nothing is asked
};

enum class Part { Training, HeldOut };

// Sequences first … first+count−1 of a part. The parts are disjoint: a sequence is held out exactly if the numbers of
// its first key and first value add up to a multiple of 4.
Batch draw(const Task& task, Part part, const stepwell::Rng& rng, std::int64_t first, std::int64_t count);

}  // namespace recall
