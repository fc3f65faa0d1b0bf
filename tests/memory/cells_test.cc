// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/cells.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/memory/examples.h"

namespace stepwell::memory {
namespace {

double largest(const Tensor& t) {
  double most = 0;
  for (std::int64_t i = 0; i < t.numel(); ++i) most = std::max(most, std::fabs(t.at(i)));
  return most;
}

// 500 free steps with tokens of this size.
double largest_of_rollout(const MemoryUpdater& cell, Tensor memory, double size) {
  Context ctx = Context::serial();
  double most = 0;
  for (std::uint64_t t = 0; t < 500; ++t) {
    memory =
        cell.step(ctx, memory, random_tensor({memory.size(0), 1, cell.token_width()}, t, -size, size, cell.dtype()));
    for (std::int64_t i = 0; i < memory.numel(); ++i) EXPECT_FALSE(std::isnan(memory.at(i)));
    most = std::max(most, largest(memory));
  }
  return most;
}

TEST(GatedMemory, StaysWithinOneForEverWithoutAClamp) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    for (const double weight : {1.0, 30.0, 1e5}) {
      GatedMemoryUpdater cell(16, 3, 3, Config::Object{}, Rng(3));
      EXPECT_EQ(cell.clamp(), 0);
      layers::NamedTensors wide;
      for (const auto& [name, tensor] : cell.named_parameters()) {
        const Tensor t = tensor.clone();
        for (float& w : t.span<float>()) w *= static_cast<float>(weight);
        wide.emplace_back(name, t);
      }
      cell.set_named_parameters(wide);
      cell.to(dtype);
      for (const double size : {0.0, 1.0, 1e6}) {
        EXPECT_LE(largest_of_rollout(cell, random_tensor({8, 16}, 1, -1, 1, dtype), size), 1.0)
            << weight << " " << size;
        EXPECT_LE(largest_of_rollout(cell, Tensor::full({8, 16}, 1, dtype), size), 1.0) << weight << " " << size;
        EXPECT_LE(largest_of_rollout(cell, Tensor::full({8, 16}, -1, dtype), size), 1.0) << weight << " " << size;
      }
    }
  }
}

// Every gate z and candidate c = ±1 at M = ±1: the sum of the two rounded products never exceeds 1.
TEST(GatedMemory, BoundHoldsExactlyForEveryGate) {
  Context ctx = Context::serial();
  GatedMemoryUpdater cell(1, 1, 1, Config::Object{{"bias", true}}, Rng(3));
  const std::int64_t n = 1 << 16;
  for (const double sign : {1.0, -1.0}) {
    cell.set_named_parameters({{"w_z", Tensor::from<float>(std::vector<float>{0, 1}, {1, 2})},
                               {"w_c", Tensor::zeros({1, 2})},
                               {"b_z", Tensor::zeros({1})},
                               {"b_c", Tensor::full({1}, sign * 50)},
                               {"w_read", Tensor::zeros({1, 1})}});
    const Tensor tokens = random_tensor({n, 1, 1}, 5, -20, 20, DType::F32);
    const Tensor next = cell.step(ctx, Tensor::full({n, 1}, sign), tokens);
    EXPECT_LE(largest(next), 1.0);
    EXPECT_GT(largest(next), 1 - 1e-6);
  }
}

TEST(GatedMemory, GateJumpsAtASwitchAndHoldsInSteadyState) {
  Context ctx = Context::serial();
  GatedMemoryUpdater cell(2, 1, 1, Config::Object{}, Rng(3));
  // A token far from 0 opens the gate and is taken over; a token at 0 leaves the memory as it is, but for half of it.
  const auto matrix = [](std::vector<float> v) { return Tensor::from<float>(v, {2, 3}); };
  cell.set_named_parameters({{"w_z", matrix({0, 0, 20, 0, 0, -20})},
                             {"w_c", matrix({0, 0, 20, 0, 0, 20})},
                             {"w_read", Tensor::zeros({1, 2})}});
  const Tensor memory = Tensor::full({1, 2}, 0.25), next = cell.step(ctx, memory, Tensor::full({1, 1, 1}, 1));
  EXPECT_NEAR(next.at(0), 1, 1e-6);     // z near 1
  EXPECT_NEAR(next.at(1), 0.25, 1e-6);  // z near 0
}

TEST(ClonedMemory, HasTheValueOfItsDefinition) {
  Context ctx = Context::serial();
  ClonedMemoryUpdater cell(3, 2, 2, Config::Object{{"hidden", 5}}, Rng(3));
  cell.to(DType::F64);
  const Transitions at = random_transitions(cell, 1, 1);
  const layers::NamedTensors p = cell.named_parameters();
  ASSERT_EQ(p.size(), 3U);
  const auto gelu_of = [](double x) {
    return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  };
  const Tensor next = cell.step(ctx, at.memory, at.tokens);
  for (std::int64_t i = 0; i < 3; ++i) {
    double expected = 0.9 * at.memory.at(i);
    for (std::int64_t h = 0; h < 5; ++h) {
      double pre = 0;
      for (std::int64_t j = 0; j < 5; ++j) {
        pre += p[0].second.at(h * 5 + j) * (j < 3 ? at.memory.at(j) : at.tokens.at(j - 3));
      }
      expected += p[1].second.at(i * 5 + h) * gelu_of(pre);
    }
    EXPECT_NEAR(next.at(i), expected, 1e-14);
  }
}

TEST(ClonedMemory, FreeRolloutStaysWithinItsClamp) {
  ClonedMemoryUpdater cell(16, 3, 3, Config::Object{}, Rng(3));
  EXPECT_LE(largest_of_rollout(cell, random_tensor({4, 16}, 1, -1, 1, DType::F32), 1), 4);
  EXPECT_EQ(largest_of_rollout(cell, random_tensor({4, 16}, 1, -1, 1, DType::F32), 1e6), 4);
}

TEST(ContractionEstimate, IsTheLargestStretchOfTheUpdate) {
  Context ctx = Context::serial();
  ClonedMemoryUpdater cell(4, 2, 2, Config::Object{{"hidden", 3}}, Rng(3));
  const Tensor memory = random_tensor({5, 4}, 1, -1, 1, DType::F32),
               tokens = random_tensor({5, 1, 2}, 2, -1, 1, DType::F32);
  // Without the perceptron, 0.9 M is left.
  layers::NamedTensors still = cell.named_parameters();
  still[1].second = Tensor::zeros({4, 3});
  cell.set_named_parameters(still);
  EXPECT_NEAR(cell.contraction_estimate(ctx, memory, tokens), 0.9, 1e-6);

  // Against the stretch of random small changes: never below it, and reached by the worst one.
  GatedMemoryUpdater gated(4, 2, 2, Config::Object{}, Rng(3));
  gated.to(DType::F64);
  const Tensor m = memory.to(DType::F64), x = tokens.to(DType::F64), at = gated.step(ctx, m, x);
  const double estimate = gated.contraction_estimate(ctx, m, x);
  double most = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const Tensor d = random_tensor({5, 4}, 100 + i), moved = m.clone();
    for (std::int64_t j = 0; j < 20; ++j) moved.data<double>()[j] += 1e-7 * d.at(j);
    const Tensor next = gated.step(ctx, moved, x);
    for (std::int64_t s = 0; s < 5; ++s) {
      double change = 0, size = 0;
      for (std::int64_t j = 4 * s; j < 4 * s + 4; ++j) {
        change += std::pow(next.at(j) - at.at(j), 2);
        size += std::pow(1e-7 * d.at(j), 2);
      }
      most = std::max(most, std::sqrt(change / size));
    }
  }
  EXPECT_LE(most, estimate * (1 + 1e-5));
  EXPECT_GT(most, estimate * 0.95);
}

}  // namespace
}  // namespace stepwell::memory
