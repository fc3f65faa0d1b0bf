// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "stepwell/core/tensor.h"

namespace stepwell::memory {

// The matrix W [out, in] that minimises Σ |W x − y|² + penalty · n · mean(x²) · |W|² over n rows x of X [n, in] and y
// of Y [n, out], both F32; by Cholesky's factors of X'X in double. Throws Error if no penalty ≥ 0 makes that positive
// definite (rows that are not finite, or a penalty of 0 with too few rows).
Tensor ridge_regression(const Tensor& X, const Tensor& Y, double penalty);

}  // namespace stepwell::memory
