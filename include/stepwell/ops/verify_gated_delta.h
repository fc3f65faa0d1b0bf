// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "stepwell/ops/gated_delta.h"

namespace stepwell::ops {

// One output of one form against the reference in double.
struct FormDifference {
  std::string form;                     // "recurrent", "chunked 64"
  std::string output;                   // "o", "final_state"
  double largest = 0;                   // max |Δ|; a number that is not finite where the reference's is counts as ∞
  double scale = 0;                     // max |reference|
  std::array<std::int64_t, 4> worst{};  // where: o (token, value head, column, 0), final_state (sequence, value head,
                                        // key row, column)
  double got = 0, expected = 0;         // there

  double relative() const;  // largest / scale; 0 where both are 0
};

// Runs every form of gated_delta on the caller's own tensors against the token-by-token reference in double: is this
// kernel right for my gates, my lengths, my states? Arguments as for gated_delta; `state` (absent: zero) and the inputs
// stay as they are. `chunk` ≥ 1 is the chunk of the chunked form. Allocates copies of everything in double.
template <class T>
std::vector<FormDifference> verify_gated_delta(Context& ctx, const GatedDeltaInputs<T>& in, const Segments& segments,
                                               View<const T, 4> state, std::int64_t chunk = 64);

}  // namespace stepwell::ops
