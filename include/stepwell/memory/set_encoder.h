// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "stepwell/autograd/functions.h"
#include "stepwell/core/config.h"
#include "stepwell/core/rng.h"
#include "stepwell/layers/module.h"
#include "stepwell/memory/training.h"

namespace stepwell::memory {

// What a memory is put through last: nothing, tanh, or division by its root mean square.
enum class MemoryBound { None, Tanh, Rms };

struct SetEncoderConfig {
  std::int64_t token_width = 0;
  std::int64_t output_width = 0;  // of what is predicted; 0: token_width
  std::int64_t embed_width = 24;
  std::int64_t memory_width = 16;
  std::int64_t window = 16;  // most tokens a memory is made of
  std::int64_t heads = 1;    // a divisor of embed_width
  bool recency = false;      // timestamps by age, and a pooled mean that halves every half_life tokens
  double half_life = 0;      // in tokens; 0: window / 4
  MemoryBound bound = MemoryBound::None;

  // Of the options but the widths of token and output; unknown keys and values out of range throw Error.
  static SetEncoderConfig read(std::int64_t token_width, std::int64_t output_width, const Config& options);
  Config options() const;  // what read() takes, every option spelled out
};

// A teacher of memories: it sees a whole window of tokens at once, as a set, and turns it into a memory that predicts
// what comes next. All windows of a sequence are encoded at the same time, so that a memory for every token, the label
// of one-step training, costs no recurrence.
//
//   E = X embedᵀ (+ timestamps of each token's age);   Z = E + softmax(Q Kᵀ / √(m / heads)) V
//   M = bound(memory · mean Z);   prediction = decoder M
//
// Parameters (m = embed_width): embed [m, token], attn.q, attn.k, attn.v [m, m], memory [Mem, m], decoder [out, Mem].
// The age of a token counts from the newest of its window. Without recency the order of a window's tokens is not seen.
// Bits   of a memory depend on its window alone: not on the batch, other windows or threads.
// Source  arXiv:2606.06479 for the idea; the set encoder and its pooling are this library's.
class SetEncoderTeacher : public layers::Module {
 public:
  SetEncoderTeacher(const SetEncoderConfig& config, const Rng& rng);

  const SetEncoderConfig& config() const { return config_; }

  // Windows of w tokens, 1 ≤ w ≤ window: x [B, w, token] → [B, Mem].
  Variable encode(Context& ctx, const Variable& x) const;
  // Windows of rows of x [L, token], in order of their first rows → [windows, Mem].
  Variable encode(Context& ctx, const Variable& x, std::span<const ops::RowWindow> windows) const;
  // The memory after every token of x [B, T, token], of the last `window` tokens or as many as there are → [B, T, Mem].
  // Off the tape.
  Tensor encode_trajectory(Context& ctx, const Tensor& x) const;
  // memory [..., Mem] → [..., out].
  Variable predict(Context& ctx, const Variable& memory) const;

  // One step on mean (predict(encode(windows)) − next)²: windows [B, w, token], next [B, out].
  UpdateReport train_step(Context& ctx, const Tensor& windows, const Tensor& next, double lr);
  // Its optimiser, as train::Adam::state(). Nothing before the first step.
  layers::NamedTensors optimizer_state() const { return optimiser_.state(); }
  void set_optimizer_state(const layers::NamedTensors& state) { optimiser_.set_state(parameters(), state); }

 private:
  SetEncoderConfig config_;
  layers::Parameter *embed_, *q_, *k_, *v_, *memory_, *decoder_;
  Tensor timestamps_;  // F64 [window, m]
  Tensor weights_;     // F64 [window], by age
  LazyAdam optimiser_;
};

}  // namespace stepwell::memory
