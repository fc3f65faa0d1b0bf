// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// What is learnt: signs over a distance, series, states of mixers as memories.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "stepwell/io/json.h"

#include "bench/memory/memory_bench.h"
#include "bench/memory/runs.h"

namespace stepwell::bench {

namespace {

const std::vector<std::int64_t> kTimes = {1, 2, 4};
constexpr std::int64_t kMixerSeeds = 3;  // at most: they take longer than the small cells and hardly differ
constexpr std::int64_t kNeedleLength = 96, kSeriesLength = 64, kSeriesWindow = 16, kSeriesDrift = 400;

// Adds one seed's figures to a row.
void add(MemoryRow& row, const std::vector<double>& figures) {
  row.figures.resize(figures.size());
  for (std::size_t i = 0; i < figures.size(); ++i) row.figures[i].push_back(figures[i]);
}

struct Mixer {
  const char *name, *options;
};
constexpr Mixer kMixers[] = {{"mamba", R"({"d_state": 8})"},
                             {"gated_delta_net2", R"({"num_heads": 2, "head_dim": 8})"},
                             {"mlstm", R"({"num_heads": 2, "inner_dim": 16})"}};

std::string told(const std::string& what, std::int64_t seed) { return what + ", seed " + std::to_string(seed); }

// Joint with imitation, the same cell unrolled, and mixers trained through time: right signs at each multiple of the
// length.
MemoryTable signs(const MemoryBench& bench, const std::string& task, std::int64_t steps, const char* schedule) {
  MemoryTable table{task + ", trained at T = 96: part of right signs",
                    {"trained by", "T", "2T", "4T", "teacher at T", "seconds"},
                    {}};
  for (const std::string mode : {"joint", "bptt"}) {
    MemoryRow row{mode == "joint" ? "gated cell, imitation" : "gated cell, through time", {}};
    for (std::int64_t seed = 0; seed < bench.seeds; ++seed) {
      bench.progress(told(task + ": " + row.name, seed));
      Config recipe = base_recipe(task, kNeedleLength, mode, seed);
      recipe.set_path("train.steps", steps);
      recipe.set_path("train.schedule", schedule);
      const auto [seconds, report] = distilled(bench.ctx, recipe);
      std::vector<double> figures;
      for (const std::int64_t k : kTimes) figures.push_back(error_at(report, k, "student"));
      figures.push_back(error_at(report, 1, "teacher"));
      figures.push_back(seconds);
      add(row, figures);
    }
    table.rows.push_back(std::move(row));
  }
  for (const auto& [mixer, options] : kMixers) {
    MemoryRow row{std::string(mixer) + ", through time", {}};
    for (std::int64_t seed = 0; seed < std::min(bench.seeds, kMixerSeeds); ++seed) {
      bench.progress(told(task + ": " + row.name, seed));
      std::vector<double> figures = trained_mixer(bench.ctx, mixer, options, task, kNeedleLength, steps, seed, kTimes);
      std::rotate(figures.begin(), figures.begin() + 1, figures.end());  // seconds last
      figures.insert(figures.end() - 1, std::nan(""));
      add(row, figures);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

MemoryTable memory_needle(const MemoryBench& bench) { return signs(bench, "needle", 2000, "constant"); }
MemoryTable memory_distractors(const MemoryBench& bench) { return signs(bench, "needle_distractors", 4000, "cosine"); }

MemoryTable memory_distance(const MemoryBench& bench) {
  MemoryTable table{"needle: part of right signs at the trained length", {"T", "imitation", "through time"}, {}};
  for (const std::int64_t length : {24, 48, 96, 192}) {
    MemoryRow row{std::to_string(length), {{}, {}}};
    for (std::int64_t seed = 0; seed < bench.seeds; ++seed) {
      for (std::size_t i = 0; i < 2; ++i) {
        bench.progress(told("distance " + row.name + (i == 0 ? ": imitation" : ": through time"), seed));
        Config recipe = base_recipe("needle", length, i == 0 ? "joint" : "bptt", seed);
        recipe.set_path("evaluate.times", Config::Array{1});
        recipe.set_path("evaluate.drift_length", length);
        row.figures[i].push_back(error_at(distilled(bench.ctx, recipe).report, 1, "student"));
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

namespace {

void for_series(Config& recipe) {
  recipe.set_path("teacher.window", kSeriesWindow);
  recipe.set_path("teacher.recency", true);
  recipe.set_path("train.schedule", "cosine");
  recipe.set_path("evaluate.drift_length", kSeriesDrift);
}

const std::vector<std::string> kSeriesColumns = {
    "trained by",    "error, T",          "2T",      "4T",          "steps 301–400",
    "teacher there", "drift, steps 1–16", "301–400", "of variance", "persistence, 4T",
    "best average",  "Bayes filter",      "seconds"};

std::vector<double> series_figures(const Trained& run) {
  std::vector<double> figures;
  for (const std::int64_t k : kTimes) figures.push_back(error_at(run.report, k, "student"));
  figures.push_back(drift_at(run.report, true, "student"));
  figures.push_back(drift_at(run.report, true, "teacher"));
  figures.push_back(drift_at(run.report, false, "drift"));
  figures.push_back(drift_at(run.report, true, "drift"));
  figures.push_back(drift_at(run.report, true, "over_variance"));
  for (const char* rival : {"persistence", "best_exponential_average", "bayes_filter"}) {
    figures.push_back(error_at(run.report, 4, rival));
  }
  figures.push_back(run.seconds);
  return figures;
}

}  // namespace

MemoryTable memory_series(const MemoryBench& bench) {
  MemoryTable table{"series, trained at T = 64 with a window of 16: mean square errors", kSeriesColumns, {}};
  for (const std::string task : {"regimes", "oscillators"}) {
    for (const std::string mode : {"frozen", "joint", "bptt"}) {
      MemoryRow row{task + ", " + (mode == "bptt" ? "through time" : mode), {}};
      for (std::int64_t seed = 0; seed < bench.seeds; ++seed) {
        bench.progress(told(row.name, seed));
        Config recipe = base_recipe(task, kSeriesLength, mode, seed);
        for_series(recipe);
        add(row, series_figures(distilled(bench.ctx, recipe)));
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

MemoryTable memory_cells(const MemoryBench& bench) {
  MemoryTable table{"oscillators, the state of a mixer as the memory, joint: mean square errors", kSeriesColumns, {}};
  for (const auto& [mixer, options] : kMixers) {
    MemoryRow row{mixer, {}};
    for (std::int64_t seed = 0; seed < bench.seeds; ++seed) {
      bench.progress(told("cells: " + row.name, seed));
      Config recipe = base_recipe("oscillators", kSeriesLength, "joint", seed);
      for_series(recipe);
      recipe.set_path("teacher.bound", "none");
      recipe.set_path("cell.type", mixer);
      recipe.set_path("cell.mixer", io::parse_json(options, "options"));
      add(row, series_figures(distilled(bench.ctx, recipe)));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace stepwell::bench
