// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "stepwell/core/config.h"
#include "stepwell/core/context.h"

// Whole runs, and the figures they end with.
namespace stepwell::bench {

struct Trained {
  double seconds = 0;
  Config report;  // memory/report.h, without its losses
};

// The recipe that sections vary: a needle, gated cell of 16 numbers, joint. Keys as in a recipe's file.
Config base_recipe(const std::string& task, std::int64_t length, const std::string& mode, std::int64_t seed);

// Trains to the end and measures.
Trained distilled(Context& ctx, const Config& recipe);

// A figure of the report's "errors" at `times` times the trained length; NaN if there is none.
double error_at(const Config& report, std::int64_t times, const char* name);
// Of the last two rows of the report's "drift": the first window, and the last steps.
double drift_at(const Config& report, bool last, const char* name);

// A forecaster of one block of this mixer (options as JSON), trained through time by its own kernels on as many
// sequences: seconds, then its figure at each multiple of the length.
std::vector<double> trained_mixer(Context& ctx, const std::string& mixer, const std::string& options,
                                  const std::string& task, std::int64_t length, std::int64_t steps, std::int64_t seed,
                                  const std::vector<std::int64_t>& times);

}  // namespace stepwell::bench
