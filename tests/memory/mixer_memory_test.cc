// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/mixer_memory.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/layers/registry.h"

#include "tests/memory/examples.h"

namespace stepwell::memory {
namespace {

// The first of a mixer's conformance configurations, at a width that fits all of them.
std::unique_ptr<MixerMemory> make(const layers::MixerRow& row) {
  Config options;
  options.set("width", 12);
  options.set("mixer", io::parse_json(row.conformance_options.front(), "test"));
  return std::make_unique<MixerMemory>(row.name, 3, 2, options, Rng(7));
}

TEST(MixerMemory, EveryRegisteredMixerIsACell) {
  Context ctx = Context::serial();
  for (const layers::MixerRow& row : layers::mixers()) {
    SCOPED_TRACE(row.name);
    const auto cell = make(row);
    EXPECT_EQ(cell->type(), row.name);
    EXPECT_GE(cell->memory_width(), 1);
    const Transitions at = random_transitions(*cell, 2, 1);
    const UpdateReport first = cell->train_step(ctx, at, 3e-3);
    UpdateReport last;
    for (int i = 0; i < 30; ++i) last = cell->train_step(ctx, at, 3e-3);
    EXPECT_FALSE(first.skipped || last.skipped);
    EXPECT_LT(last.memory_loss + last.readout_loss, first.memory_loss + first.readout_loss);
  }
}

// Updating a memory token by token is running the layer over the sequence: the same bits, in every memory on the way.
TEST(MixerMemory, StepsAreTheLayersOwn) {
  Context ctx = Context::serial();
  for (const layers::MixerRow& row : layers::mixers()) {
    SCOPED_TRACE(row.name);
    const auto cell = make(row);
    constexpr std::int64_t kTime = 9;
    const std::int64_t K = cell->context();
    const Tensor x = random_tensor({2, K - 1 + kTime, 3}, 3, -1, 1, DType::F32);
    for (std::int64_t i = 0; i < 2; ++i) x.slice(0, i, 1).slice(1, 0, K - 1).copy_from(Tensor::zeros({1, K - 1, 3}));
    Tensor memory = cell->initial_memory(ctx, 2);
    NoGrad no_grad;
    const Variable embedded = linear(ctx, x.slice(1, K - 1, kTime).clone(), cell->parameters()[0]->value);
    ASSERT_EQ(cell->parameters()[0]->name, "w_in");
    layers::State state = cell->layer().initial_state(ctx, 2);
    for (std::int64_t t = 0; t < kTime; ++t) {
      memory = cell->step(ctx, memory, x.slice(1, t, K).clone());
      state = cell->layer().forward(ctx, embedded.value().slice(1, t, 1).clone(), std::move(state)).state;
      ASSERT_TRUE(memory.same_bits(cell->memory_of(ctx, state).value())) << t;
    }
  }
}

TEST(MixerMemory, GradientsOfEveryMixerAreThoseOfTheirDefinitions) {
  for (const layers::MixerRow& row : layers::mixers()) {
    SCOPED_TRACE(row.name);
    expect_cell_gradients(*make(row), 21, 12);
  }
}

TEST(MixerMemory, RefusesOptionsItDoesNotKnow) {
  EXPECT_THROW(MixerMemory("mamba", 3, 2, Config::Object{{"heads", 2}}, Rng(1)), Error);
  EXPECT_THROW(MixerMemory("mambo", 3, 2, Config::Object{}, Rng(1)), Error);
}

}  // namespace
}  // namespace stepwell::memory
