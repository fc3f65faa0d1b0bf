// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "stepwell/autograd/variable.h"
#include "stepwell/core/context.h"

namespace stepwell::python {

namespace nb = nanobind;

// Arrays by argument's name. Absent ones are not in it.
using Arguments = std::map<std::string, Variable>;
// Values by result's name, in the order in which they are returned.
using Results = std::vector<std::pair<std::string, Variable>>;

// The arrays of a dict that are not None: those that `wanted` names as leaves, the others as constants.
Arguments arguments_of(const nb::dict& arrays, const std::set<std::string>& wanted);

// What a call left: its results, and if something was wanted what their adjoint needs.
class Call {
 public:
  Call(Results results, Arguments leaves) : results_(std::move(results)), leaves_(std::move(leaves)) {}

  // The values, as NumPy arrays, in a list. Those of a call without leaves are handed out once, without a copy.
  nb::list results();

  // Gradients of Σ ⟨result, cotangent⟩ over the results that `cotangents` names, by leaf: None where no result that has
  // one depends on it. May be called again and again, from several threads too.
  nb::dict backward(const nb::dict& cotangents) const;

 private:
  Results results_;
  Arguments leaves_;
};

}  // namespace stepwell::python
