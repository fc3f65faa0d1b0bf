// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "stepwell/io/json.h"
#include "stepwell/memory/updater.h"

#include "tests/autograd/expect_gradients.h"

namespace stepwell::memory {

// Transitions with random numbers, of the cell's dtype.
inline Transitions random_transitions(const MemoryUpdater& cell, std::int64_t batch, std::uint64_t seed) {
  const DType dtype = cell.dtype();
  return {.memory = random_tensor({batch, cell.memory_width()}, seed, -0.8, 0.8, dtype),
          .tokens = random_tensor({batch, cell.context(), cell.token_width()}, seed + 1, -1, 1, dtype),
          .target = random_tensor({batch, cell.memory_width()}, seed + 2, -0.8, 0.8, dtype),
          .next = random_tensor({batch, cell.output_width()}, seed + 3, -1, 1, dtype)};
}

// Copies of all parameters and optimisers.
inline layers::NamedTensors bits_of(const MemoryUpdater& cell) {
  layers::NamedTensors all;
  for (const auto& [name, tensor] : cell.named_parameters()) all.emplace_back(name, tensor.clone());
  for (const auto& [name, tensor] : cell.optimizer_state()) all.emplace_back(name, tensor.clone());
  return all;
}

// Names of the tensors that differ.
inline std::vector<std::string> differing(const layers::NamedTensors& a, const layers::NamedTensors& b) {
  std::vector<std::string> names;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    if (!a[i].second.same_bits(b[i].second)) names.push_back(a[i].first);
  }
  return names;
}

// Gradients of the cell's memory and prediction with respect to every parameter, the memory and the tokens, against
// finite differences. The cell is converted to F64.
inline void expect_cell_gradients(MemoryUpdater& cell, std::uint64_t seed, std::int64_t limit = 0) {
  cell.to(DType::F64);
  const Transitions at = random_transitions(cell, 3, seed);
  std::vector<GradcheckInput> inputs = {{"memory", at.memory}, {"tokens", at.tokens}};
  for (const auto& [name, tensor] : cell.named_parameters()) inputs.push_back({name, tensor.clone()});
  Context ctx = Context::serial();
  const auto parameters = cell.parameters();
  const auto run = [&](const Variables& v) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters[i]->value = v[i + 2];
      parameters[i]->unprepare();
    }
    const Variable memory = cell.transition(ctx, v[0], v[1]);
    return Variables{memory, cell.readout(ctx, memory)};
  };
  const GradcheckResult result = gradcheck(ctx, run, inputs, limit);
  EXPECT_TRUE(result.passed) << cell.type() << ": " << result.to_string();
  EXPECT_GT(result.checked, 20) << cell.type();
}

}  // namespace stepwell::memory
