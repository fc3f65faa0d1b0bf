// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "verify/case_file.h"
#include "verify/delta_cases.h"

// The runners of kinds mlstm, slstm and block_stack.
namespace stepwell::verify {

inline constexpr std::int64_t kParallel = -1;  // instead of tokens per chunk: a chunk as long as the sequence

// The mLSTM cell in one form: recurrent, parallel, or in chunks.
CaseRun run_mlstm_in(Context& ctx, const CaseFile& file, DType dtype, std::int64_t chunk);

template <std::int64_t kChunk>
CaseRun run_mlstm(Context& ctx, const CaseFile& file, DType dtype) {
  return run_mlstm_in(ctx, file, dtype, kChunk);
}

CaseRun run_slstm(Context& ctx, const CaseFile& file, DType dtype);
CaseRun run_block_stack(Context& ctx, const CaseFile& file, DType dtype);

}  // namespace stepwell::verify
