// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "stepwell/core/tensor.h"

// First values that the layers of xLSTM have in common.
namespace stepwell::layers {

// Deviations of normal numbers: "small init" of what reads a stream of width E, "wang init" of what writes to it.
inline double small_deviation(std::int64_t E) { return std::sqrt(2.0 / (5.0 * static_cast<double>(E))); }
inline double wang_deviation(std::int64_t E, std::int64_t blocks) {
  return 2.0 / (static_cast<double>(blocks) * std::sqrt(static_cast<double>(E)));
}

// n numbers from `first` to `last`, evenly spaced; one: the first.
inline Tensor evenly_spaced(double first, double last, std::int64_t n) {
  const Tensor t = Tensor::empty({n});
  for (std::int64_t i = 0; i < n; ++i) {
    const double share = n > 1 ? static_cast<double>(i) / static_cast<double>(n - 1) : 0;
    t.data<float>()[i] = static_cast<float>(first + (last - first) * share);
  }
  return t;
}

}  // namespace stepwell::layers
