// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/norm.h"

namespace stepwell::layers {

RmsNorm::RmsNorm(std::int64_t width, double eps)
    : eps_(eps), weight_(add_parameter("weight", Tensor::full({width}, 1.0), false)) {}

Variable RmsNorm::forward(Context& ctx, const Variable& x) const { return rms_norm(ctx, x, weight_.value, eps_); }

}  // namespace stepwell::layers
