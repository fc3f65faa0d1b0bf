// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepwell/core/context.h"

// Memories trained by imitation and through time, side by side: what `stepwell bench --memory` prints.
namespace stepwell::bench {

// One row of a table: under each column the figures of all seeds.
struct MemoryRow {
  std::string name;
  std::vector<std::vector<double>> figures;
};
struct MemoryTable {
  std::string title;
  std::vector<std::string> columns;  // the rows' names first
  std::vector<MemoryRow> rows;
};

struct MemoryBench {
  Context& ctx;
  std::int64_t seeds = 5;
  std::function<void(const std::string&)> progress;  // told what runs next
};

struct MemorySection {
  std::string_view name, summary;
  MemoryTable (*run)(const MemoryBench& bench);
};
// cost, gradient, needle, distractors, distance, series, cells
std::span<const MemorySection> memory_sections();

// Mean and standard deviation (of the sample; 0 for a single figure).
std::pair<double, double> mean_and_deviation(std::span<const double> figures);

// One file each.
MemoryTable memory_cost(const MemoryBench& bench);
MemoryTable memory_gradient(const MemoryBench& bench);
MemoryTable memory_needle(const MemoryBench& bench);
MemoryTable memory_distractors(const MemoryBench& bench);
MemoryTable memory_distance(const MemoryBench& bench);
MemoryTable memory_series(const MemoryBench& bench);
MemoryTable memory_cells(const MemoryBench& bench);

}  // namespace stepwell::bench
