// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepwell/core/config.h"
#include "stepwell/core/context.h"
#include "stepwell/ops/verify_gated_delta.h"

#include "python/extension/calls.h"

namespace stepwell::python {

// One call of an op: its arrays, its options, and for packed sequences their borders.
struct OpRequest {
  std::string op;
  Arguments arrays;
  Config options;
  std::vector<std::int64_t> borders;
  bool packed = false;
};

// Runs it. Token arrays are [batch, time, …]; throws Error for an unknown op or option and for shapes that do not fit.
Results run_op(Context& ctx, const OpRequest& request);

// ops::verify_gated_delta on a request of gated_delta, with its option "chunk".
std::vector<ops::FormDifference> verify_delta(Context& ctx, const OpRequest& request);

}  // namespace stepwell::python
