// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "bench/measure/workload.h"

namespace stepwell::bench {

std::vector<Case> matmul_cases();

}  // namespace stepwell::bench
