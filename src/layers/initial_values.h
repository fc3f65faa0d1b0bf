// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/core/rng.h"

// First values that several mixers share. All with the library's own functions: the same bits on every machine, unlike
// libm's.
namespace stepwell::layers {

// Uniform in ±1/sqrt(fan_in).
Tensor uniform_fan_in(const Rng& rng, const Shape& shape, std::int64_t fan_in);

// log of numbers uniform in (low, high]; 0 ≤ low ≤ high.
Tensor log_of_uniform(const Rng& rng, const Shape& shape, double low, double high);

// ln(first), ln(first + 1), …
Tensor log_of_range(std::int64_t n, std::int64_t first = 1);

// The pre-activation whose softplus is the step v: v + log(1 − exp(−v)) (v itself above softplus's threshold 20).
// F64 → F64.
Tensor inverse_softplus(const Tensor& steps);

// Biases of step sizes that are log-uniform in [low, high], none below `floor`.
Tensor step_biases(const Rng& rng, const Shape& shape, double low, double high, double floor);

}  // namespace stepwell::layers
