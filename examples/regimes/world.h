// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stepwell/core/rng.h"
#include "stepwell/core/tensor.h"

// A series that holds one of four levels for a while, then jumps to another, seen through noise; and the predictors
// that need no training.
namespace regimes {

inline constexpr double kLevels[] = {-0.9, -0.3, 0.3, 0.9};
inline constexpr int kLevelCount = 4;
inline constexpr double kNoise = 0.2;                            // standard deviation
inline constexpr int kShortest = 12, kLongest = 32;              // steps a level lasts, each as likely as the others
inline constexpr double kHazard = 2.0 / (kShortest + kLongest);  // chance of a jump per step, on average

// `count` sequences of `length` values and the value after each.
struct Sequences {
  std::int64_t count = 0, length = 0;
  std::vector<float> values;  // [count, length + 1]

  std::span<const float> sequence(std::int64_t i) const {
    const auto step = static_cast<std::size_t>(length + 1);
    return std::span(values).subspan(static_cast<std::size_t>(i) * step, step);
  }
  stepwell::Tensor inputs() const;   // [count, length, 1]
  stepwell::Tensor targets() const;  // [count, length, 1]
};

// Sequences number first … first+count−1 of those `rng` stands for.
Sequences draw(const stepwell::Rng& rng, std::int64_t first, std::int64_t count, std::int64_t length);

// Mean square errors of predicting every next value:
double persistence(const Sequences& s);       // by the value before;
double best_exponential(const Sequences& s);  // by an exponential average, the best of 99 rates for these sequences;
double bayes_filter(const Sequences& s);      // by the exact filter for known levels, noise and hazard.

}  // namespace regimes
