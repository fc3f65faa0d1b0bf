// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stepwell/core/context.h"
#include "stepwell/models/model.h"

namespace stepwell::train {

// What a forecaster makes of one series, in the series' own units.
struct Forecast {
  std::int64_t values = 0;        // how many were predicted: those from `first` on
  std::vector<double> predicted;  // each of them, from all before it
  double mse = 0;                 // of that
  // The same of repeating the value before, and of an exponential average of all values before, the best of the rates
  // 0.01, 0.02, … 0.99 for these very values.
  double persistence = 0, best_exponential_average = 0;
  std::vector<double> next;  // what comes after the last value: the first from the series, the others from these
};

// Reads `values` from the first on with the state carried along, in ctx's mode, without recording. Errors are
// those of values[first …], first ≥ 1, and 0 where there are none. Throws Error (Argument) for a model that is not a
// forecaster of one channel, for first < 1, and for ahead > 0 without values.
Forecast forecast(Context& ctx, const models::Model& model, std::span<const double> values, std::int64_t first,
                  std::int64_t ahead = 0);

}  // namespace stepwell::train
