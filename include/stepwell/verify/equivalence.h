// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepwell/core/config.h"
#include "stepwell/core/dtype.h"

// Whether the forms of the mLSTM layer compute the same, and what the published implementation computes: values and
// gradients, tensor by tensor (docs/xlstm.md).
namespace stepwell::verify {

// One tensor in one comparison.
struct EquivalenceRow {
  std::string comparison;  // "chunk 16", "parallel", "two segments", "golden, recurrent": against the recurrent form in
                           // one piece, or against golden results
  DType dtype = DType::F64;
  std::int64_t time = 0;
  std::string tensor;     // "y", "gradient of q_proj.weight"
  double mean = 0;        // |Δ|
  double largest = 0;     // |Δ| / max|expected|
  double mean_bound = 0;  // 0: none
  double largest_bound = 0;
  bool within() const;  // false for NaN
};

struct Equivalence {
  std::vector<EquivalenceRow> rows;
  std::string not_run;  // what could not be compared, and why; empty: nothing
  bool passed() const;  // something was compared, and all of it is within its bounds
  Config to_config() const;
};

// T = 1 … 12, 64, 100, 257 in F32 and F64: the chunked forms (chunks of 4, 16 and 64), the parallel form (one chunk)
// and a run cut in two, against the recurrent form, for a layer with non-zero gate weights and from a state that is not
// zero; then every case of the mLSTM cell and layer in `golden_folder` (empty: none) in every form.
// Bounds  between forms: mean |Δ| < 1e-7 in values and 1e-6 in gradients for T ≤ 12 in F32; maxima 2e-5 and 1e-4 of
//         each tensor's maximum in F32, 1e-12 and 1e-10 in F64; golden cases: their own. The gradient of the input
//         gate's bias is a small difference of large terms; it is held to the maximum of the forget gate's bias's.
Equivalence measure_equivalence(const std::string& golden_folder);

}  // namespace stepwell::verify
