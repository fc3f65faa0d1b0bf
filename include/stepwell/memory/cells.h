// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/memory/updater.h"

// The two small cells. Shapes: M [Mem], x [token]; [M; x] is both, one after the other.
namespace stepwell::memory {

// A multilayer perceptron beside a leak.
//
//   M' = 0.9 M + w_mem gelu(w_in [M; x])        prediction = w_read M'
//
// Parameters: w_in [hidden, Mem + token], w_mem [Mem, hidden], w_read [out, Mem]. gelu is the one by tanh. The leak
// makes the update a contraction only where the perceptron's slope in M stays below 0.1: nothing enforces that, so
// step() clamps every entry to ±4.
class ClonedMemoryUpdater : public MemoryUpdater {
 public:
  static constexpr double kLeak = 0.9, kClamp = 4;

  // Options: hidden (default 4·Mem).
  ClonedMemoryUpdater(std::int64_t memory_width, std::int64_t token_width, std::int64_t output_width,
                      const Config& options, const Rng& rng);
  std::string_view type() const override { return "cloned"; }
  Config config() const override;
  Variable transition(Context& ctx, const Variable& memory, const Variable& tokens) const override;

 private:
  std::int64_t hidden_;
  layers::Parameter *in_, *mem_;
};

// A gate between the old memory and a candidate.
//
//   z = sigmoid(w_z [M; x])    c = tanh(w_c [M; x])    M' = (1 − z) M + z c    prediction = w_read M'
//
// Parameters: w_z, w_c [Mem, Mem + token], b_z, b_c [Mem] if asked for, w_read [out, Mem].
// Bound  |M'| ≤ max(|M|, 1) entry by entry, hence |M_t| ≤ 1 for ever from |M_0| ≤ 1, for any tokens and without a
//        clamp. It holds exactly in floating point, since 1 − z, the two products and their sum are rounded one by one:
//        rounding is monotone, so the sum is at most that of fl(1 − z) and z, which rounds to 1 at most.
//        Targets beyond ±1 are out of its reach: give its teacher MemoryBound::Tanh.
class GatedMemoryUpdater : public MemoryUpdater {
 public:
  // Options: bias (default false).
  GatedMemoryUpdater(std::int64_t memory_width, std::int64_t token_width, std::int64_t output_width,
                     const Config& options, const Rng& rng);
  std::string_view type() const override { return "gated"; }
  Config config() const override;
  Variable transition(Context& ctx, const Variable& memory, const Variable& tokens) const override;

 private:
  bool bias_;
  layers::Parameter *z_, *c_, *z_bias_ = nullptr, *c_bias_ = nullptr;
};

}  // namespace stepwell::memory
