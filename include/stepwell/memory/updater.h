// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "stepwell/core/config.h"
#include "stepwell/core/rng.h"
#include "stepwell/layers/module.h"
#include "stepwell/memory/training.h"

namespace stepwell::memory {

// Single steps of memories, each an example of its own. `tokens` holds the last context() tokens, the newest last;
// zeros stand for tokens before a sequence's first.
struct Transitions {
  Tensor memory;  // [B, Mem] before the newest token
  Tensor tokens;  // [B, context, token]
  Tensor target;  // [B, Mem] what the memory should be after it
  Tensor next;    // [B, out] what should be predicted then; for train_step alone
};

// A recurrent memory that is trained one step at a time: a vector, an update by a token, and a linear readout that
// predicts from it. Parameters and memories are of one dtype, F32 or F64.
class MemoryUpdater : public layers::Module {
 public:
  virtual std::string_view type() const = 0;  // the name make_updater() takes
  virtual Config config() const = 0;          // every option
  std::int64_t memory_width() const { return memory_width_; }
  std::int64_t token_width() const { return token_width_; }
  std::int64_t output_width() const { return output_width_; }
  // How many tokens an update reads: 1, or the width of a mixer's short convolution.
  std::int64_t context() const { return context_; }

  // The memory after a token, differentiable: memory [B, Mem], tokens [B, context, token] → [B, Mem].
  virtual Variable transition(Context& ctx, const Variable& memory, const Variable& tokens) const = 0;
  // memory [..., Mem] → [..., out], differentiable.
  Variable readout(Context& ctx, const Variable& memory) const;

  // The same off the tape, with the bits of transition() and readout(); step() then clamps every entry to ±clamp()
  // where the cell has a clamp. Also for one memory [Mem] and its tokens [context, token] (or [token], for a context of
  // 1) → [Mem], [out].
  Tensor step(Context& ctx, const Tensor& memory, const Tensor& tokens) const;
  Tensor predict(Context& ctx, const Tensor& memory) const;
  double clamp() const { return clamp_; }  // 0: none
  // What a sequence starts from: zeros, unless the cell knows better. [B, Mem]
  virtual Tensor initial_memory(Context& ctx, std::int64_t batch) const;

  // One step on mean (M' − target)² + mean (readout(M') − next)² over all parameters.
  UpdateReport train_step(Context& ctx, const Transitions& examples, double lr);
  // One step on mean (M' − target)² alone, with an optimiser of its own: the readout and train_step's optimiser keep
  // their bits.
  UpdateReport train_step_memory(Context& ctx, const Transitions& examples, double lr);
  void reset_correction() { correction_.reset(); }  // train_step_memory's optimiser

  // Both optimisers, under "cloning." and "correction."; nothing of one that has not been used.
  layers::NamedTensors optimizer_state() const;
  // Takes them back. Throws Error for a missing, unknown or misshapen tensor, and then changes nothing.
  void set_optimizer_state(const layers::NamedTensors& state);

  // The largest factor by which an update stretches a small change of the memory, over the samples given (memory [S,
  // Mem], tokens [S, context, token]): the largest singular value of dM'/dM, by power iteration. Below 1 everywhere the
  // update would be a contraction; nothing enforces that.
  double contraction_estimate(Context& ctx, const Tensor& memory, const Tensor& tokens) const;

 protected:
  MemoryUpdater(std::int64_t memory, std::int64_t token, std::int64_t output, std::int64_t context, double clamp);
  // Adds w_read.
  void add_readout(const Rng& rng);
  // Throws Error unless memory is [B, Mem] and tokens [B, context, token], of the parameters' dtype.
  void check_arguments(const Variable& memory, const Variable& tokens) const;

 private:
  std::vector<layers::Parameter*> all_but_readout();

  std::int64_t memory_width_, token_width_, output_width_, context_;
  double clamp_;
  layers::Parameter* read_ = nullptr;
  LazyAdam cloning_, correction_;
};

// A cell by name: "gated", "cloned", or any mixer of the registry (MixerMemory). Options as each cell's config() gives
// them; unknown ones throw Error. `memory_width` 0: 16, or for a mixer what its options make of its state, which is the
// only other value it takes.
std::unique_ptr<MemoryUpdater> make_updater(std::string_view type, std::int64_t memory_width, std::int64_t token_width,
                                            std::int64_t output_width, const Config& options, const Rng& rng);

}  // namespace stepwell::memory
