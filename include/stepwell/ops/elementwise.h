// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/core/context.h"
#include "stepwell/core/tensor.h"

// Elementwise ops on contiguous tensors of equal shape, F32 or F64. The output may be an input.
namespace stepwell::ops {

void add(Context& ctx, const Tensor& a, const Tensor& b, const Tensor& out);

}  // namespace stepwell::ops
