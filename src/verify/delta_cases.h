// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "stepwell/autograd/functions.h"
#include "stepwell/ops/verify_gated_delta.h"

#include "verify/case_file.h"

// The runners of kinds gated_delta and ssd, in one form of the op.
namespace stepwell::verify {

inline constexpr std::int64_t kRecurrent = 0;  // instead of tokens per chunk

// The arguments of gated_delta from inputs of such a case ("in.q", [B, T, heads, width]) and its options; scale is by
// default K^−½. What is wrong with shapes, gated_delta itself finds.
GatedDeltaArguments delta_arguments(Context& ctx, const std::map<std::string, Variable>& leaves, ConfigReader& config);

// ops::verify_gated_delta on these arguments and a packed state (undefined: zero), which gated_delta checks first.
std::vector<ops::FormDifference> delta_differences(Context& ctx, const GatedDeltaArguments& in, const Variable& state,
                                                   const Segments& segments, std::int64_t chunk);

CaseRun run_gated_delta_in(Context& ctx, const CaseFile& file, DType dtype, std::int64_t chunk);
CaseRun run_ssd_in(Context& ctx, const CaseFile& file, DType dtype, std::int64_t chunk);

template <std::int64_t kChunk>
CaseRun run_gated_delta(Context& ctx, const CaseFile& file, DType dtype) {
  return run_gated_delta_in(ctx, file, dtype, kChunk);
}
template <std::int64_t kChunk>
CaseRun run_ssd(Context& ctx, const CaseFile& file, DType dtype) {
  return run_ssd_in(ctx, file, dtype, kChunk);
}

}  // namespace stepwell::verify
