// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepwell/layers/layer.h"

// The part of a state that every layer with an mLSTM cell has.
namespace stepwell::layers {

// C, n, m of H heads with keys of K and values of V.
inline std::vector<StateField> mlstm_state_fields(std::int64_t H, std::int64_t K, std::int64_t V) {
  return {{"C", {H, ops::state_units(V), K, ops::kStateUnit}}, {"n", {H, K}}, {"m", {H}}};
}

inline void push_state(State& state, MlstmVariables last) {
  state.push(std::move(last.C));
  state.push(std::move(last.n));
  state.push(std::move(last.m));
}

inline void check_exchange_fields(const std::vector<Variable>& fields, std::size_t expected, std::string_view where) {
  STEPWELL_CHECK(fields.size() == expected, where,
                 "a state of " + std::to_string(fields.size()) + " fields, expected " + std::to_string(expected));
}

}  // namespace stepwell::layers
