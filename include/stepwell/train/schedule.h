// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace stepwell::train {

enum class Decay { Constant, Cosine };

// Learning rate by step: a linear warm-up, then constant, or half a cosine wave down to a fraction of the peak.
struct Schedule {
  double peak = 1e-3;
  std::int64_t warmup = 0;  // steps 0 … warmup−1 have peak·(step+1)/warmup
  Decay decay = Decay::Constant;
  std::int64_t steps = 1;       // of the whole run; later steps stay at the last value
  double final_fraction = 0.1;  // of the peak, reached at the last step (Cosine)

  // The rate of step ≥ 0; made of correctly rounded operations only: the same bits on every machine.
  double at(std::int64_t step) const;
};

}  // namespace stepwell::train
