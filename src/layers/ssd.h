// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "stepwell/autograd/functions.h"
#include "stepwell/core/config.h"
#include "stepwell/layers/mamba2.h"

namespace stepwell::layers {

// A pair [low, high] as configurations spell it: null, "inf", "Infinity" or a number beyond float's range is no bound.
StepLimits read_step_limits(ConfigReader& reader, std::string_view key);
Config step_limits_option(const StepLimits& limits);

// The recurrence of Mamba-2 (SSD, arXiv:2405.21060), per head with a state S [N, P]: a gated delta rule that decays by
// head and erases nothing.
//   Δ = dt + dt_bias, through softplus, between the limits;  S ← exp(Δ·A)·S + B (Δ·x)ᵀ;  y = SᵀC + D⊙x
struct SsdArguments {
  Variable x;        // [L, H, P]
  Variable dt;       // [L, H]
  Variable A;        // [H], negative
  Variable B, C;     // [L, G, N]; head h uses group ⌊h/(H/G)⌋
  Variable D;        // [H] or [H, P], or undefined
  Variable dt_bias;  // [H], or undefined
  bool softplus = true;
  StepLimits dt_limit;
  ops::Form form = ops::Form::Auto;
  std::int64_t chunk = 0;
};
// → {y [L, H, P], last state}; states are packed, [S, H, ⌈P/16⌉, N, 16], or undefined (zero).
std::pair<Variable, Variable> ssd(Context& ctx, const SsdArguments& in, Variable state, const Segments& segments);

}  // namespace stepwell::layers
