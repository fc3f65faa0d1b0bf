// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace stepwell::io {

// Labelled places of an axis, and the range it shows.
struct Ticks {
  double low = 0, high = 1;
  std::vector<double> at;
  std::vector<std::string> labels;
};

// Round numbers for the finite values low ≤ high: 1, 2 or 5 times a power of ten apart, about `wanted` of them (≥ 2).
// A single value gets room on both sides. The range is widened to ticks at both ends if `widen`.
Ticks linear_ticks(double low, double high, int wanted, bool widen);

// Powers of ten for 0 < low ≤ high, with their double and fivefold where there is room; the range is widened to such
// numbers. The ticks' positions are the values themselves.
Ticks log_ticks(double low, double high, int wanted);

}  // namespace stepwell::io
