// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace stepwell::cli {

// An exponential average that forgets over a fiftieth of the values, and over a fifth of those seen at the beginning,
// where curves are steep; values that are not finite are passed over, and have NaN.
std::vector<double> smoothed(std::span<const double> values);

// Whether a logarithmic axis shows the values better: all finite ones above 0, and far apart.
bool wants_logarithm(std::span<const double> values);

// The mean of the finite ones among the last twentieth, and the median of all; NaN without any.
double mean_of_last(std::span<const double> values);
double median(std::vector<double> values);

}  // namespace stepwell::cli
