// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "bench/memory/memory_bench.h"

#include <cmath>

namespace stepwell::bench {

std::span<const MemorySection> memory_sections() {
  static constexpr MemorySection kSections[] = {
      {"cost", "time, sequential depth and memory of an update against the length", memory_cost},
      {"gradient", "the loss at the end of a sequence, by how far back a token is", memory_gradient},
      {"needle", "a sign said once, asked for much later", memory_needle},
      {"distractors", "the same among other signs", memory_distractors},
      {"distance", "the needle at several lengths", memory_distance},
      {"series", "short memories: regimes and oscillators", memory_series},
      {"cells", "states of mixers as memories", memory_cells},
  };
  return kSections;
}

std::pair<double, double> mean_and_deviation(std::span<const double> figures) {
  double mean = 0, squares = 0;
  const auto n = static_cast<double>(figures.size());
  for (const double x : figures) mean += x / n;
  for (const double x : figures) squares += (x - mean) * (x - mean);
  return {mean, figures.size() > 1 ? std::sqrt(squares / (n - 1)) : 0};
}

}  // namespace stepwell::bench
