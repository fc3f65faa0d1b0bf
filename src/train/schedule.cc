// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/schedule.h"

#include <algorithm>

namespace stepwell::train {

namespace {

// cos(πx) for x in [0, 1], absolute error below 1e-15: −sin(π(x − ½)) by its Taylor series, since the C library's
// cosine differs between versions.
double cos_pi(double x) {
  constexpr double kPi = 3.141592653589793;
  const double a = kPi * (x - 0.5), square = a * a;
  double sum = 0;
  for (int k = 21; k >= 3; k -= 2) sum = (1 + sum) * (-square / (k * (k - 1)));
  return -a * (1 + sum);
}

}  // namespace

double Schedule::at(std::int64_t step) const {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (decay == Decay::Constant) return peak;
  const std::int64_t span = std::max<std::int64_t>(steps - 1 - warmup, 1);
  const double x = std::min(static_cast<double>(step - warmup) / static_cast<double>(span), 1.0);
  return peak * (final_fraction + (1 - final_fraction) * 0.5 * (1 + cos_pi(x)));
}

}  // namespace stepwell::train
