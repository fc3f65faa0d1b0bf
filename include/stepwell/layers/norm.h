// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/layers/module.h"

namespace stepwell::layers {

// RMS norm of the last dimension: x / sqrt(mean(x²) + eps) · weight. Parameter `weight` [width], initially 1; no decay.
class RmsNorm : public Module {
 public:
  RmsNorm(std::int64_t width, double eps);
  Variable forward(Context& ctx, const Variable& x) const;

 private:
  double eps_;
  Parameter& weight_;
};

}  // namespace stepwell::layers
