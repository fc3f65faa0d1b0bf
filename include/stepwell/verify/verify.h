// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stepwell/layers/layer.h"
#include "stepwell/verify/report.h"

// The promises of docs/numerics.md as code: measured on the user's machine by `stepwell verify`, and by the tests.
namespace stepwell::verify {

// What can be verified: a layer, or an op dressed as one (its token inputs are the columns of x, the rest parameters).
struct Subject {
  std::string name;     // "layer mamba", "op selective_scan"
  std::string variant;  // the configuration, for messages
  std::unique_ptr<layers::Layer> layer;
  // The plain scalar recurrence on x [L, width] and a full state, in the dtype of x; null where there is none.
  std::function<layers::LayerOutput(const Tensor& x, const layers::State& state, const Segments& segments)> reference;
  // For registered mixers, what a model is built of.
  std::string mixer;
  Config options;
};

// Every op with a reference and every conformance configuration of every registered mixer, initialised from a fixed
// seed.
std::vector<Subject> all_subjects();

struct Options {
  std::string layer;                      // only subjects of this op or layer; empty: all
  std::vector<std::string> case_folders;  // golden cases to run
  std::string inputs;                     // a file with inputs of the gated delta rule: only they are checked
  std::int64_t chunk = 64;                // ≥ 1, of the chunked form on `inputs`
  // Number of heap allocations of the program so far; without it X6 is not run.
  std::int64_t (*heap_allocations)() = nullptr;
  std::string scratch_folder;                  // for files written by X5; empty: the system's temporary folder
  std::function<void(const Check&)> on_check;  // called as each check is done
};

// Runs the promises for all subjects, then the cases. Throws Error for an unknown layer or folder.
Report run(const Options& options);

// All promises for the variants of one op or layer: one line per promise, the worst of the variants.
void verify_subjects(const std::vector<Subject*>& variants, const Options& options, Report& report);

// All case files under `folder` (recursively), one line per kind, type and dtype.
void verify_cases(const std::string& folder, const Options& options, Report& report);

// Every form of the gated delta rule on the tensors of a file (docs/gated-delta.md) against the reference in double:
// one line per form and output. Throws Error for a file without q, k and v or with shapes that do not fit.
void verify_inputs(const std::string& path, std::int64_t chunk, const Options& options, Report& report);

}  // namespace stepwell::verify
