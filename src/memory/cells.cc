// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/cells.h"

#include <array>

#include "layers/initial_values.h"

namespace stepwell::memory {

namespace {

constexpr std::int64_t kMostHidden = 1 << 20;

// [M; x] for memory [B, Mem] and tokens [B, 1, token].
Variable joined(Context& ctx, const Variable& memory, const Variable& tokens) {
  const std::array<Variable, 2> both = {memory, reshape(ctx, tokens, {tokens.size(0), tokens.size(2)})};
  return concat(ctx, both);
}

}  // namespace

ClonedMemoryUpdater::ClonedMemoryUpdater(std::int64_t memory_width, std::int64_t token_width, std::int64_t output_width,
                                         const Config& options, const Rng& rng)
    : MemoryUpdater(memory_width, token_width, output_width, 1, kClamp) {
  ConfigReader reader(options, "cloned cell");
  hidden_ = reader.integer("hidden", 4 * memory_width, 1, kMostHidden);
  reader.finish();
  const std::int64_t joint = memory_width + token_width;
  in_ = &add_matrix("w_in", layers::uniform_fan_in(rng.stream("w_in"), {hidden_, joint}, joint));
  mem_ = &add_matrix("w_mem", layers::uniform_fan_in(rng.stream("w_mem"), {memory_width, hidden_}, hidden_));
  add_readout(rng);
}

Config ClonedMemoryUpdater::config() const { return Config::Object{{"hidden", hidden_}}; }

Variable ClonedMemoryUpdater::transition(Context& ctx, const Variable& memory, const Variable& tokens) const {
  check_arguments(memory, tokens);
  const Variable hidden = gelu(ctx, apply(ctx, joined(ctx, memory, tokens), *in_, nullptr), Gelu::Tanh);
  return add(ctx, scale(ctx, memory, kLeak), apply(ctx, hidden, *mem_, nullptr));
}

GatedMemoryUpdater::GatedMemoryUpdater(std::int64_t memory_width, std::int64_t token_width, std::int64_t output_width,
                                       const Config& options, const Rng& rng)
    : MemoryUpdater(memory_width, token_width, output_width, 1, 0) {
  ConfigReader reader(options, "gated cell");
  bias_ = reader.boolean("bias", false);
  reader.finish();
  const std::int64_t joint = memory_width + token_width;
  z_ = &add_matrix("w_z", layers::uniform_fan_in(rng.stream("w_z"), {memory_width, joint}, joint));
  c_ = &add_matrix("w_c", layers::uniform_fan_in(rng.stream("w_c"), {memory_width, joint}, joint));
  if (bias_) {
    z_bias_ = &add_parameter("b_z", Tensor::zeros({memory_width}), false);
    c_bias_ = &add_parameter("b_c", Tensor::zeros({memory_width}), false);
  }
  add_readout(rng);
}

Config GatedMemoryUpdater::config() const { return Config::Object{{"bias", bias_}}; }

Variable GatedMemoryUpdater::transition(Context& ctx, const Variable& memory, const Variable& tokens) const {
  check_arguments(memory, tokens);
  const Variable both = joined(ctx, memory, tokens);
  const Variable z = sigmoid(ctx, apply(ctx, both, *z_, z_bias_)), c = tanh(ctx, apply(ctx, both, *c_, c_bias_));
  const Variable keep = sub(ctx, Tensor::full(z.shape(), 1, z.dtype()), z);
  return add(ctx, mul(ctx, keep, memory), mul(ctx, z, c));
}

}  // namespace stepwell::memory
