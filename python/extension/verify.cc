// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "python/extension/verify.h"

#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "stepwell/verify/verify.h"

#include "python/extension/arrays.h"
#include "python/extension/compute.h"
#include "python/extension/options.h"
#include "verify/case_file.h"

namespace stepwell::python {

namespace {

const char* outcome_name(verify::Outcome outcome) {
  switch (outcome) {
    case verify::Outcome::Pass: return "PASS";
    case verify::Outcome::Fail: return "FAIL";
    default: return "NOT RUN";
  }
}

verify::Outcome outcome_of(const std::string& name) {
  return name == "PASS" ? verify::Outcome::Pass : name == "FAIL" ? verify::Outcome::Fail : verify::Outcome::NotRun;
}

nb::dict check_as_dict(const verify::Check& check) {
  nb::dict row;
  row["subject"] = check.subject;
  row["promise"] = check.promise;
  row["outcome"] = outcome_name(check.outcome);
  row["figure"] = check.figure;
  row["reason"] = check.reason;
  row["compared"] = check.compared;
  return row;
}

// Runs the promises; `on_check(row)` after each of them, under the interpreter's lock.
void run_verify(const std::string& layer, const std::vector<std::string>& folders, const nb::callable& on_check) {
  verify::Options options;
  options.layer = layer;
  options.case_folders = folders;
  bool raised = false;
  options.on_check = [&](const verify::Check& check) {
    const nb::gil_scoped_acquire lock;
    try {
      on_check(check_as_dict(check));
      if (PyErr_CheckSignals() == 0) return;
    } catch (nb::python_error& error) {
      error.restore();
    }
    raised = true;
    throw Interrupted();
  };
  try {
    const nb::gil_scoped_release unlocked;
    verify::run(options);
  } catch (const Interrupted&) {
    throw nb::python_error();
  }
}

std::string line_of(const std::string& subject, const std::string& promise, const std::string& outcome,
                    const std::string& figure, const std::string& reason, std::int64_t compared) {
  return verify::Report::line({subject, promise, outcome_of(outcome), figure, reason, compared});
}

nb::dict tensors_of(const verify::CaseFile& file) {
  nb::dict tensors;
  for (const char* prefix : {"in.", "param.", "out.", "cot.", "grad."}) {
    for (const auto& [name, tensor] : file.tensors(prefix)) tensors[(prefix + name).c_str()] = array_of(tensor);
  }
  return tensors;
}

nb::tuple tolerance_of(const verify::CaseFile& file, const std::string& tensor, bool wide) {
  const auto tolerance = file.tolerance(tensor, wide ? DType::F64 : DType::F32);
  return nb::make_tuple(tolerance.relative, tolerance.absolute);
}

}  // namespace

void bind_verify(nb::module_& m) {
  nb::class_<verify::CaseFile>(m, "CaseFile")
      .def(nb::init<const std::string&>())
      .def_prop_ro("name", [](const verify::CaseFile& file) { return file.name(); })
      .def_prop_ro("kind", [](const verify::CaseFile& file) { return file.kind(); })
      .def_prop_ro("group", [](const verify::CaseFile& file) { return file.group(); })
      .def_prop_ro("config", [](const verify::CaseFile& file) { return value_of(file.config()); })
      .def("tensors", &tensors_of)
      .def("runs_in",
           [](const verify::CaseFile& file, bool wide) { return file.runs_in(wide ? DType::F64 : DType::F32); })
      .def("tolerance", &tolerance_of);
  m.def("verify", &run_verify);
  m.def("verify_header", &verify::Report::header);
  m.def("verify_line", &line_of);
}

}  // namespace stepwell::python
