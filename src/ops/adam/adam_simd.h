// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/ops/adam.h"

namespace stepwell::ops {

// adam_step on n ≥ 0 contiguous elements.
void adam_array(const AdamScalars& scalars, const float* g, float* p, float* m, float* v, std::int64_t n);
void adam_array(const AdamScalars& scalars, const double* g, double* p, double* m, double* v, std::int64_t n);

}  // namespace stepwell::ops
