// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "bench/ops/cases.h"

#include <cstdint>

namespace stepwell::bench {

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& list :
       {matmul_cases(), mamba_cases(), delta_cases(), xlstm_cases(), layer_cases(), vector_cases()}) {
    cases.insert(cases.end(), list.begin(), list.end());
  }
  return cases;
}

Tensor spread(const Shape& shape, float low, float high) {
  Tensor t = Tensor::empty(shape);
  std::uint32_t state = 12345;
  for (float& x : t.span<float>()) {
    state = state * 1664525u + 1013904223u;
    x = low + static_cast<float>(state >> 8) * 0x1p-24f * (high - low);
  }
  return t;
}

}  // namespace stepwell::bench
