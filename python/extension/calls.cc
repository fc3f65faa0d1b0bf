// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "python/extension/calls.h"

#include "stepwell/core/error.h"

#include "python/extension/arrays.h"
#include "python/extension/compute.h"

namespace stepwell::python {

Arguments arguments_of(const nb::dict& arrays, const std::set<std::string>& wanted) {
  Arguments arguments;
  for (const auto& [key, array] : arrays) {
    if (array.is_none()) continue;
    std::string name = nb::cast<const char*>(key);
    const Tensor tensor = tensor_of(array, name);
    Variable value = wanted.contains(name) ? Variable::leaf(tensor) : Variable(tensor);
    arguments.emplace(std::move(name), std::move(value));
  }
  return arguments;
}

nb::list Call::results() {
  nb::list values;
  for (auto& [name, variable] : results_) {
    values.append(array_of(leaves_.empty() ? std::exchange(variable, {}).take() : variable.value()));
  }
  return values;
}

nb::dict Call::backward(const nb::dict& cotangents) const {
  std::vector<Variable> outputs;
  std::vector<Tensor> arriving;
  for (const auto& [key, array] : cotangents) {
    if (array.is_none()) continue;
    const std::string name = nb::cast<const char*>(key);
    const Variable* result = nullptr;
    for (const auto& [candidate, variable] : results_) {
      if (candidate == name) result = &variable;
    }
    STEPWELL_CHECK(result != nullptr, "backward", "there is no result " + name);
    const Tensor cotangent = tensor_of(array, "the gradient of " + name);
    STEPWELL_CHECK(cotangent.shape() == result->shape() && cotangent.dtype() == result->dtype(), "backward",
                   "the gradient of " + name + " is " + std::string(dtype_name(cotangent.dtype())) + " " +
                       cotangent.shape().to_string() + ", expected " + std::string(dtype_name(result->dtype())) + " " +
                       result->shape().to_string());
    outputs.push_back(*result);
    arriving.push_back(cotangent);
  }
  std::vector<std::pair<std::string, Tensor>> found;
  compute(Mode::Exact, [&](Context& ctx) {
    const Gradients gradients = stepwell::backward(ctx, outputs, arriving);
    for (const auto& [name, leaf] : leaves_) found.emplace_back(name, gradients.of(leaf));
  });
  nb::dict by_name;
  for (auto& [name, gradient] : found) by_name[name.c_str()] = array_of(std::move(gradient));
  return by_name;
}

}  // namespace stepwell::python
