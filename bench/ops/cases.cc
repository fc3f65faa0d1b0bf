// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "bench/ops/cases.h"

namespace stepwell::bench {

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& list : {matmul_cases()}) cases.insert(cases.end(), list.begin(), list.end());
  return cases;
}

}  // namespace stepwell::bench
