// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepwell/core/rng.h"
#include "stepwell/memory/updater.h"

namespace stepwell::memory {

// The set of transitions that imitation learns from: the teacher's own, which stay for good, and a sample of all that
// roll-outs have visited, each of them in it with the same probability (reservoir sampling, decided by the seed).
class TransitionPool {
 public:
  TransitionPool(std::int64_t memory_width, std::int64_t token_numbers, std::int64_t capacity, const Rng& rng);

  void keep(const Transitions& transitions);
  void visit(const Transitions& transitions);
  std::int64_t kept() const { return rows(kept_); }
  std::int64_t visited() const { return rows(visited_); }

  // `count` of them, kept and visited alike, with repetition; decided by `rng`. tokens [count, context, token].
  Transitions draw(const Rng& rng, std::int64_t count, std::int64_t context) const;

  // Everything, as tensors "kept", "visited" (rows of memory, tokens, target) and "seen".
  layers::NamedTensors state() const;
  void set_state(const layers::NamedTensors& state);

 private:
  std::int64_t rows(const std::vector<float>& all) const { return static_cast<std::int64_t>(all.size()) / width(); }
  std::int64_t width() const { return 2 * memory_width_ + token_numbers_; }
  void write_row(const Transitions& from, std::int64_t i, float* row) const;

  std::int64_t memory_width_, token_numbers_, capacity_;
  Rng reservoir_;
  std::vector<float> kept_, visited_;
  std::int64_t seen_ = 0;  // by roll-outs
};

}  // namespace stepwell::memory
