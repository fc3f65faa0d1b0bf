// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/mamba_recurrence.h"

#include <string>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"

#include "tests/autograd/random_tensor.h"

namespace stepwell::memory {
namespace {

layers::MambaConfig active() {
  layers::MambaConfig c;
  c.d_model = 12;
  c.d_state = 5;
  c.init = layers::MambaInit::Active;
  return c;
}

TEST(MambaRecurrence, SteppingAWindowIsTheBlocksForward) {
  Context ctx = Context::serial();
  const layers::Mamba block(active(), Rng(1));
  const MambaRecurrence recurrence(ctx, block.named_parameters());
  const Tensor x = random_tensor({3, 20, 12}, 2, -1, 1, DType::F32), forward = block.forward(ctx, x).y.value();
  for (int run = 0; run < 2; ++run) {  // from a fresh state twice
    layers::State state = recurrence.fresh_state(3);
    for (std::int64_t t = 0; t < 20; ++t) {
      const Tensor y = recurrence.step(ctx, state, x.slice(1, t, 1).clone().reshape({3, 12}));
      ASSERT_TRUE(y.same_bits(forward.slice(1, t, 1).clone().reshape({3, 12}))) << t;
    }
  }
}

TEST(MambaRecurrence, ReadsEveryExtentOffTheShapes) {
  Context ctx = Context::serial();
  layers::MambaConfig c = active();
  c.d_inner = 7;
  c.d_conv = 3;
  c.dt_rank = 2;
  c.bias = true;
  c.conv_bias = false;
  const layers::Mamba block(c, Rng(1));
  const MambaRecurrence recurrence(ctx, block.named_parameters());
  const layers::Mamba& read = recurrence.block();
  for (const char* key : {"d_inner", "d_state", "d_conv", "dt_rank", "bias", "conv_bias"}) {
    EXPECT_EQ(*read.config().find(key), *block.config().find(key)) << key;
  }
}

TEST(MambaRecurrence, NamesWhatIsMissing) {
  Context ctx = Context::serial();
  const layers::Mamba block(active(), Rng(1));
  for (const auto& [left_out, tensor] : block.named_parameters()) {
    layers::NamedTensors tensors = block.named_parameters();
    std::erase_if(tensors, [&name = left_out](const auto& t) { return t.first == name; });
    if (left_out == "conv1d.bias") {
      EXPECT_NO_THROW(MambaRecurrence(ctx, tensors));
      continue;
    }
    try {
      const MambaRecurrence recurrence(ctx, tensors);
      FAIL() << left_out;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(left_out), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace stepwell::memory
