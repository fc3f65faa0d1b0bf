// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "python/extension/tasks.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <nanobind/stl/string.h>

#include "stepwell/core/error.h"
#include "stepwell/train/sequence_task.h"

#include "python/extension/arrays.h"
#include "python/extension/options.h"

namespace stepwell::python {

namespace {

using train::SequenceBatch;
using train::SequenceTask;

SequenceTask* make_task(const std::string& name, const nb::dict& options) {
  return train::make_sequence_task(name, config_of(options, name)).release();
}

nb::dict sample(const SequenceTask& self, std::int64_t seed, const std::string& purpose, std::int64_t first,
                std::int64_t count, std::int64_t length) {
  STEPWELL_CHECK(first >= 0, "task", "first = " + std::to_string(first) + ", expected at least 0");
  SequenceBatch batch;
  {
    const nb::gil_scoped_release unlocked;
    batch = self.sample(seed, purpose, first, count, length);
  }
  nb::dict arrays;
  arrays["x"] = array_of(std::move(batch.x));
  arrays["target"] = array_of(std::move(batch.target));
  arrays["asked"] = array_of(std::move(batch.asked));
  arrays["event"] = array_of(std::move(batch.event));
  return arrays;
}

Tensor part_of(const nb::dict& batch, const char* name, DType dtype, const Shape& shape) {
  const Tensor tensor = tensor_of(batch[name], name);
  STEPWELL_CHECK(tensor.dtype() == dtype && tensor.shape() == shape && tensor.is_contiguous(), name,
                 std::string(dtype_name(tensor.dtype())) + " " + tensor.shape().to_string() + ", expected " +
                     std::string(dtype_name(dtype)) + " " + shape.to_string());
  return tensor;
}

SequenceBatch batch_of(const SequenceTask& task, const nb::dict& batch) {
  const Tensor x = tensor_of(batch["x"], "x");
  const bool sequences = x.rank() == 3;
  const std::int64_t count = sequences ? x.size(0) : 1, length = sequences ? x.size(1) : 1;
  return {part_of(batch, "x", DType::F32, {count, length, task.input_width()}),
          part_of(batch, "target", DType::F32, {count, length, task.output_width()}),
          part_of(batch, "asked", DType::Bool, {count, length}), part_of(batch, "event", DType::I64, {count})};
}

nb::dict baselines(const SequenceTask& self, const nb::dict& arrays, std::int64_t from) {
  const SequenceBatch batch = batch_of(self, arrays);
  train::Figures figures;
  {
    const nb::gil_scoped_release unlocked;
    figures = self.baselines(batch, from);
  }
  nb::dict by_name;
  for (const auto& [name, value] : figures) by_name[name.c_str()] = value;
  return by_name;
}

double score(const SequenceTask& self, const nb::dict& arrays, nb::handle prediction, std::int64_t from) {
  const SequenceBatch batch = batch_of(self, arrays);
  const Tensor predicted = tensor_of(prediction, "prediction");
  const nb::gil_scoped_release unlocked;
  return train::score(self, batch, predicted, from);
}

nb::list rows() {
  nb::list rows;
  for (const train::SequenceTaskRow& row : train::sequence_tasks()) {
    rows.append(nb::make_tuple(std::string(row.name), std::string(row.summary)));
  }
  return rows;
}

}  // namespace

void bind_tasks(nb::module_& m) {
  nb::class_<SequenceTask>(m, "SequenceTask")
      .def_prop_ro("input_width", &SequenceTask::input_width)
      .def_prop_ro("output_width", &SequenceTask::output_width)
      .def_prop_ro("signs", [](const SequenceTask& self) { return self.answer() == train::Answer::Sign; })
      .def_prop_ro("config", [](const SequenceTask& self) { return value_of(self.config()); })
      .def("sample", &sample)
      .def("baselines", &baselines)
      .def("score", &score);
  m.def("make_task", &make_task, nb::rv_policy::take_ownership);
  m.def("sequence_tasks", &rows);
}

}  // namespace stepwell::python
