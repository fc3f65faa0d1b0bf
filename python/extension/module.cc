// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// stepwell._core: the library as the package's Python sees it. Arrays come in through stepwell/_arrays.py.
#include <set>
#include <string>
#include <thread>

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "stepwell/core/error.h"
#include "stepwell/simd/isa.h"

#include "python/extension/arrays.h"
#include "python/extension/calls.h"
#include "python/extension/compute.h"
#include "python/extension/layers.h"
#include "python/extension/memory.h"
#include "python/extension/ops.h"
#include "python/extension/options.h"
#include "python/extension/row_major.h"
#include "python/extension/tasks.h"
#include "python/extension/verify.h"

namespace stepwell::python {

namespace {

OpRequest request_of(const std::string& op, const nb::dict& arrays, const nb::dict& options, nb::handle borders,
                     const std::set<std::string>& wanted) {
  return {.op = op,
          .arrays = arguments_of(arrays, wanted),
          .options = config_of(options, op),
          .borders = integers_of(borders, "cu_seqlens"),
          .packed = !borders.is_none()};
}

Call call_op(const std::string& op, const nb::dict& arrays, const nb::dict& options, nb::handle borders,
             const std::set<std::string>& wanted) {
  const OpRequest request = request_of(op, arrays, options, borders, wanted);
  Results results = compute(Mode::Exact, [&](Context& ctx) { return run_op(ctx, request); });
  Arguments leaves;
  for (const auto& [name, value] : request.arrays) {
    if (value.requires_grad()) leaves.emplace(name, value);
  }
  return {std::move(results), std::move(leaves)};
}

nb::list verify_op(const nb::dict& arrays, const nb::dict& options, nb::handle borders) {
  const OpRequest request = request_of("gated_delta", arrays, options, borders, {});
  const auto found = compute(Mode::Exact, [&](Context& ctx) { return verify_delta(ctx, request); });
  nb::list rows;
  for (const ops::FormDifference& d : found) {
    nb::dict row;
    row["form"] = d.form;
    row["output"] = d.output;
    row["largest"] = d.largest;
    row["scale"] = d.scale;
    row["relative"] = d.relative();
    row["worst"] = d.worst;
    row["got"] = d.got;
    row["expected"] = d.expected;
    rows.append(row);
  }
  return rows;
}

nb::dict info() {
  select_instruction_set();  // applies STEPWELL_ISA
  std::vector<std::string> offered;
  for (const simd::Isa isa : simd::supported_isas()) offered.emplace_back(simd::isa_name(isa));
  nb::dict facts;
  facts["version"] = STEPWELL_VERSION;
  facts["instruction set"] = std::string(simd::isa_name(simd::current_isa()));
  facts["offered here"] = offered;
  facts["processors"] = std::thread::hardware_concurrency();
  facts["threads"] = threads();
  facts["compiler"] = STEPWELL_COMPILER;
  facts["build type"] = STEPWELL_BUILD_TYPE;
  facts["executor"] = STEPWELL_EXECUTOR;
  return facts;
}

}  // namespace

}  // namespace stepwell::python

NB_MODULE(_core, m) {
  using namespace stepwell::python;  // NOLINT: the names of this module
  // torch's graph may hold calls until after the interpreter has gone.
  nb::set_leak_warnings(false);
  nb::exception<stepwell::Error>(m, "Error", PyExc_ValueError);
  nb::class_<Call>(m, "Call").def("results", &Call::results).def("backward", &Call::backward);
  m.def("call", &call_op, nb::arg("op"), nb::arg("arrays"), nb::arg("options"), nb::arg("cu_seqlens").none(),
        nb::arg("wanted"));
  m.def("verify_gated_delta", &verify_op, nb::arg("arrays"), nb::arg("options"), nb::arg("cu_seqlens").none());
  m.def("copy_of", &copy_of);
  m.def("row_major", &row_major);
  m.def("set_num_threads", &set_threads);
  m.def("get_num_threads", &threads);
  m.def("after_fork", &after_fork);
  m.def("info", &info);
  bind_layers(m);
  bind_memory(m);
  bind_tasks(m);
  bind_verify(m);
}
