// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/report/series.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stepwell::cli {

std::vector<double> smoothed(std::span<const double> values) {
  const double longest = std::max(1.0, static_cast<double>(values.size()) / 50);
  double average = 0, seen = 0;
  std::vector<double> result;
  for (const double x : values) {
    if (std::isfinite(x)) {
      average += (x - average) / std::min(longest, 1 + seen / 5);
      seen += 1;
    }
    result.push_back(std::isfinite(x) ? average : std::nan(""));
  }
  return result;
}

bool wants_logarithm(std::span<const double> values) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    if (x <= 0) return false;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  return high > 8 * low;
}

double mean_of_last(std::span<const double> values) {
  double sum = 0;
  int count = 0;
  for (const double x : values.last(std::min(values.size(), values.size() / 20 + 1))) {
    if (!std::isfinite(x)) continue;
    sum += x;
    ++count;
  }
  return sum / count;
}

double median(std::vector<double> values) {
  std::erase_if(values, [](double x) { return !std::isfinite(x); });
  if (values.empty()) return std::nan("");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace stepwell::cli
