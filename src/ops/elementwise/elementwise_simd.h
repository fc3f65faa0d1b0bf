// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Array kernels; n ≥ 0, contiguous, out may be an input.
namespace stepwell::ops {

void add_array(const float* a, const float* b, float* out, std::int64_t n);
void add_array(const double* a, const double* b, double* out, std::int64_t n);

}  // namespace stepwell::ops
