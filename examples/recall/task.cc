// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "examples/recall/task.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace recall {

namespace {

using stepwell::Rng;
using stepwell::Tensor;

// Numbers of one sequence, one after another.
class Draws {
 public:
  explicit Draws(const Rng& rng) : rng_(rng) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(rng_.uniform(next_++) * static_cast<double>(n));
  }

 private:
  Rng rng_;
  std::uint64_t next_ = 0;
};

// The first `n` of 0 … size−1 in random order.
std::vector<std::int64_t> choose(Draws& draws, std::int64_t size, std::int64_t n) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  for (std::int64_t i = 0; i < n; ++i) std::swap(all[i], all[i + draws.below(size - i)]);
  all.resize(static_cast<std::size_t>(n));
  return all;
}

}  // namespace

Batch draw(const Task& task, Part part, const Rng& rng, std::int64_t first, std::int64_t count) {
  const Rng stream = rng.stream(part == Part::Training ? "training" : "held out");
  Batch batch{Tensor::empty({count, task.length()}, stepwell::DType::I64),
              Tensor::full({count * task.length()}, -100, stepwell::DType::I64)};
  for (std::int64_t row = 0; row < count; ++row) {
    Draws draws(stream.stream(std::to_string(first + row)));
    const std::vector<std::int64_t> keys = choose(draws, task.keys, task.pairs);
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < task.pairs; ++i) values.push_back(draws.below(task.values));
    while (((keys[0] + values[0]) % 4 == 0) != (part == Part::HeldOut)) values[0] = draws.below(task.values);
    auto* tokens = batch.tokens.data<std::int64_t>() + row * task.length();
    auto* targets = batch.targets.data<std::int64_t>() + row * task.length();
    for (std::int64_t i = 0; i < task.pairs; ++i) {
      tokens[2 * i] = keys[i];
      tokens[2 * i + 1] = task.keys + values[i];
    }
    const std::vector<std::int64_t> order = choose(draws, task.pairs, task.pairs);
    for (std::int64_t i = 0; i < task.pairs; ++i) {
      tokens[2 * task.pairs + i] = keys[order[i]];
      targets[2 * task.pairs + i] = task.keys + values[order[i]];
    }
  }
  return batch;
}

}  // namespace recall
