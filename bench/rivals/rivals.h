// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "bench/measure/workload.h"

namespace stepwell::bench {

// The BLAS-like libraries found on this machine, opened at run time, each using `threads` threads. Those not found are
// named on stderr.
std::vector<Contender> find_rivals(int threads);

}  // namespace stepwell::bench
