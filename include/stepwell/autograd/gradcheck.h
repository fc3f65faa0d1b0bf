// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stepwell/autograd/variable.h"

namespace stepwell {

struct GradcheckInput {
  std::string name;
  Tensor value;         // F64
  double absolute = 0;  // extra absolute tolerance, for gradients that are 0 but for rounding
};

struct GradcheckResult {
  bool passed = true;
  std::int64_t checked = 0;  // elements compared
  double worst = 0;          // largest |Δ| / bound
  std::string worst_input;   // and where
  std::int64_t worst_index = 0;
  double analytic = 0, numeric = 0;
  std::string to_string() const;
};

// Compares the analytic gradient of loss = Σ_o ⟨f(inputs)_o, c_o⟩ (c fixed pseudo-random cotangents) with central
// differences: step 1e-6·max(1,|x|), bound max|Δ| ≤ 1e-6·max|g| + 1e-9·max(1,|loss|) per input tensor. Checks at most
// `limit` elements of each input, spread evenly (0: all).
GradcheckResult gradcheck(Context& ctx, const std::function<std::vector<Variable>(const std::vector<Variable>&)>& f,
                          const std::vector<GradcheckInput>& inputs, std::int64_t limit = 0);

}  // namespace stepwell
