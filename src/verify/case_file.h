// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "stepwell/autograd/variable.h"
#include "stepwell/core/config.h"

namespace stepwell::verify {

// The case files below a folder, sorted. Throws Error if it cannot be read or holds none.
std::vector<std::string> case_paths(const std::string& folder);

// One golden case (docs/case-files.md): what to run, on what, and what must come out.
class CaseFile {
 public:
  // Throws Error for anything that is not a case file.
  explicit CaseFile(const std::string& path);

  const std::string& name() const { return name_; }
  const std::string& kind() const { return kind_; }
  const Config& config() const { return config_; }
  // What a report groups cases by: "selective_scan", "layer mamba".
  std::string group() const;

  // All tensors whose name starts with `prefix` ("in."), without it.
  std::vector<std::pair<std::string, Tensor>> tensors(std::string_view prefix) const;
  Tensor find(const std::string& name) const;  // undefined if absent

  struct Tolerance {
    double relative, absolute;
  };
  bool runs_in(DType dtype) const;
  Tolerance tolerance(const std::string& tensor, DType dtype) const;

 private:
  std::string name_, kind_;
  Config config_, tolerance_;
  std::map<std::string, Tensor> tensors_;
};

// One evaluation of a case: outputs by name, and the leaves whose gradients can be asked for, by "in.X" and "param.X".
struct CaseRun {
  std::map<std::string, Variable> outputs, leaves;
};

// The floating-point inputs of a case as leaves in F32 or F64.
std::map<std::string, Variable> leaves_of(const CaseFile& file, DType dtype);

// The runner of kind layer.
CaseRun run_layer(Context& ctx, const CaseFile& file, DType dtype);

}  // namespace stepwell::verify
