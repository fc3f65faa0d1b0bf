// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "stepwell/core/tensor.h"

#include "bench/measure/workload.h"

namespace stepwell::bench {

std::vector<Case> matmul_cases();
std::vector<Case> delta_cases();   // the gated delta family
std::vector<Case> mamba_cases();   // selective scan and short convolution
std::vector<Case> vector_cases();  // elementwise functions and norms
std::vector<Case> xlstm_cases();   // mLSTM and sLSTM cells
std::vector<Case> layer_cases();   // every registered mixer, parameters and all

// F32 values spread evenly between low and high, the same on every call.
Tensor spread(const Shape& shape, float low, float high);

}  // namespace stepwell::bench
