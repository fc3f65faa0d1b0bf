// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// What an update costs, and how far gradients reach.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "stepwell/autograd/functions.h"
#include "stepwell/memory/cells.h"
#include "stepwell/memory/distillation.h"
#include "stepwell/memory/set_encoder.h"
#include "stepwell/train/sequence_task.h"

#include "bench/memory/memory_bench.h"
#include "bench/memory/runs.h"
#include "verify/counted_heap.h"

namespace stepwell::bench {

namespace {

constexpr int kSteps = 15;

// Milliseconds (median) and the most mebibytes held at once, of a step.
std::pair<double, double> cost_of_step(Context& ctx, const Config& recipe) {
  memory::Distillation run(ctx, memory::DistillRecipe::read(recipe));
  std::vector<double> times;
  double most = 0;
  for (int i = 0; i < kSteps; ++i) {
    const verify::HeapMeter meter;
    const auto start = std::chrono::steady_clock::now();
    run.advance();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    most = std::max(most, static_cast<double>(meter.peak()) / (1 << 20));
  }
  std::nth_element(times.begin(), times.begin() + kSteps / 2, times.end());
  return {times[kSteps / 2], most};
}

// Norms of the gradient of a sequence's last prediction with respect to each of its tokens: mean over a batch.
std::vector<double> token_norms(Context& ctx, const Variable& x, const Variable& prediction) {
  const Tensor g = backward(ctx, sum(ctx, prediction)).of(x);
  const std::int64_t B = g.size(0), T = g.size(1), d = g.size(2);
  std::vector<double> norms(static_cast<std::size_t>(T), 0.0);
  for (std::int64_t row = 0; row < B * T; ++row) {
    double squares = 0;
    for (std::int64_t i = 0; i < d; ++i) squares += g.at(row * d + i) * g.at(row * d + i);
    norms[static_cast<std::size_t>(row % T)] += std::sqrt(squares) / static_cast<double>(B);
  }
  return norms;
}

std::vector<double> teacher_norms(Context& ctx, const Tensor& tokens, std::int64_t seed) {
  memory::SetEncoderConfig config;
  config.token_width = tokens.size(2);
  config.output_width = 1;
  config.window = tokens.size(1);
  config.bound = memory::MemoryBound::Tanh;
  const memory::SetEncoderTeacher teacher(config, Rng(static_cast<std::uint64_t>(seed)));
  const Variable x = Variable::leaf(tokens);
  return token_norms(ctx, x, teacher.predict(ctx, teacher.encode(ctx, x)));
}

std::vector<double> unrolled_norms(Context& ctx, const Tensor& tokens, std::int64_t seed) {
  const memory::GatedMemoryUpdater cell(16, tokens.size(2), 1, Config::Object{}, Rng(static_cast<std::uint64_t>(seed)));
  const Variable x = Variable::leaf(tokens);
  const std::int64_t B = tokens.size(0), T = tokens.size(1), d = tokens.size(2);
  const std::vector<std::int64_t> widths(static_cast<std::size_t>(T), d);
  Variable memory = cell.initial_memory(ctx, B);
  for (const Variable& token : split(ctx, reshape(ctx, x, {B, T * d}), widths)) {
    memory = cell.transition(ctx, memory, reshape(ctx, token, {B, 1, d}));
  }
  return token_norms(ctx, x, cell.readout(ctx, memory));
}

}  // namespace

MemoryTable memory_cost(const MemoryBench& bench) {
  MemoryTable table{"an update of 48 examples, gated cell of 16 numbers, needle",
                    {"T", "imitation: ms", "imitation: depth", "imitation: MiB", "through time: ms",
                     "through time: depth", "through time: MiB"},
                    {}};
  for (const std::int64_t length : {24, 96, 384}) {
    bench.progress("cost: T = " + std::to_string(length));
    MemoryRow row{std::to_string(length), {}};
    for (const char* mode : {"joint", "bptt"}) {
      const auto [milliseconds, mebibytes] = cost_of_step(bench.ctx, base_recipe("needle", length, mode, 0));
      const double depth = mode == std::string("joint") ? 1 : static_cast<double>(length);
      for (const double x : {milliseconds, depth, mebibytes}) row.figures.push_back({x});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

MemoryTable memory_gradient(const MemoryBench& bench) {
  constexpr std::int64_t kBatch = 16, kLength = 96;
  MemoryTable table{"norm of the gradient of the last prediction with respect to a token, before training",
                    {"tokens back", "teacher", "unrolled gated cell"},
                    {}};
  const std::vector<std::int64_t> distances = {0, 1, 2, 4, 8, 16, 32, 64, 95};
  for (const std::int64_t distance : distances) table.rows.push_back({std::to_string(distance), {{}, {}}});
  bench.progress("gradient");
  for (std::int64_t seed = 0; seed < bench.seeds; ++seed) {
    const Tensor x = train::make_sequence_task("needle_distractors")->sample(seed, "train", 0, kBatch, kLength).x;
    const std::vector<double> norms[] = {teacher_norms(bench.ctx, x, seed), unrolled_norms(bench.ctx, x, seed)};
    for (std::size_t i = 0; i < distances.size(); ++i) {
      for (std::size_t j = 0; j < 2; ++j) {
        table.rows[i].figures[j].push_back(norms[j][static_cast<std::size_t>(kLength - 1 - distances[i])]);
      }
    }
  }
  return table;
}

}  // namespace stepwell::bench
