// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/module.h"

#include <map>
#include <set>
#include <string_view>

namespace stepwell::layers {

void Parameter::set(Tensor tensor) {
  value = Variable::leaf(std::move(tensor));
  unprepare();
}

void Parameter::unprepare() {
  packed = {};
  derived = {};
}

Parameter& Module::add_parameter(std::string name, Tensor value, bool decay) {
  Parameter& parameter = own_.emplace_back();
  parameter.name = std::move(name);
  parameter.value = Variable::leaf(std::move(value));
  parameter.decay = decay;
  return parameter;
}

Parameter& Module::add_matrix(std::string name, Tensor value) {
  Parameter& parameter = add_parameter(std::move(name), std::move(value));
  parameter.product = true;
  return parameter;
}

void Module::add_part(const std::string& prefix, Module& part) {
  for (Parameter* parameter : part.parameters()) parameter->name = prefix + "." + parameter->name;
  parts_.push_back(&part);
}

std::vector<Parameter*> Module::parameters() {
  std::vector<Parameter*> all;
  for (Parameter& parameter : own_) all.push_back(&parameter);
  for (Module* part : parts_) {
    for (Parameter* parameter : part->parameters()) all.push_back(parameter);
  }
  return all;
}

std::vector<const Parameter*> Module::parameters() const {
  const auto all = const_cast<Module*>(this)->parameters();
  return {all.begin(), all.end()};
}

NamedTensors Module::named_parameters() const {
  NamedTensors named;
  for (const Parameter* parameter : parameters()) named.emplace_back(parameter->name, parameter->value.value());
  return named;
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter* parameter : parameters()) count += parameter->value.value().numel();
  return count;
}

namespace {

// The same elements in the same order: equal once extents of 1 are left out.
bool same_layout(const Shape& a, const Shape& b) {
  int i = 0, j = 0;
  for (;;) {
    while (i < a.rank() && a[i] == 1) ++i;
    while (j < b.rank() && b[j] == 1) ++j;
    if (i == a.rank() || j == b.rank()) return i == a.rank() && j == b.rank();
    if (a[i++] != b[j++]) return false;
  }
}

bool holds_numbers(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  return dtype == DType::F32 || dtype == DType::F64 || dtype == DType::BF16 || dtype == DType::F16;
}

std::string fault_of(const Parameter& parameter, const Tensor& tensor) {
  if (!tensor.defined()) return parameter.name + " is not defined";
  const Shape& wanted = parameter.value.shape();
  if (!same_layout(tensor.shape(), wanted)) {
    return parameter.name + " is " + tensor.shape().to_string() + ", expected " + wanted.to_string();
  }
  if (!holds_numbers(tensor)) {
    return parameter.name + " is " + std::string(dtype_name(tensor.dtype())) + ", expected floating point";
  }
  return {};
}

}  // namespace

void Module::set_named_parameters(const NamedTensors& tensors) {
  std::map<std::string_view, const Tensor*> given;
  std::vector<std::string> faults;
  for (const auto& [name, tensor] : tensors) {
    if (!given.emplace(name, &tensor).second) faults.push_back(name + " is given twice");
  }
  const std::vector<Parameter*> all = parameters();
  std::set<std::string_view> expected;
  for (const Parameter* parameter : all) {
    expected.insert(parameter->name);
    const auto found = given.find(parameter->name);
    if (found == given.end()) {
      faults.push_back(parameter->name + " " + parameter->value.shape().to_string() + " is missing");
    } else if (std::string fault = fault_of(*parameter, *found->second); !fault.empty()) {
      faults.push_back(std::move(fault));
    }
  }
  for (const auto& [name, tensor] : given) {
    if (!expected.contains(name))
      faults.push_back(std::string(name) + " " + tensor->shape().to_string() + " is unexpected");
  }
  if (!faults.empty()) {
    std::string message = std::to_string(faults.size()) + (faults.size() == 1 ? " fault: " : " faults: ");
    for (std::size_t i = 0; i < faults.size(); ++i) message += (i ? "; " : "") + faults[i];
    fail(ErrorCode::Argument, "set_named_parameters", message);
  }
  // Everything is converted before anything is set: running out of memory must not leave half of it changed.
  std::vector<Tensor> values;
  for (const Parameter* parameter : all) {
    const Tensor& tensor = *given.at(parameter->name);
    const Tensor converted = tensor.to(parameter->value.dtype());
    values.push_back(
        (converted.shares_storage(tensor) ? converted.clone() : converted).reshape(parameter->value.shape()));
  }
  for (std::size_t i = 0; i < all.size(); ++i) all[i]->set(std::move(values[i]));
}

void Module::to(DType dtype) {
  STEPWELL_CHECK(dtype == DType::F32 || dtype == DType::F64, "Module::to",
                 "dtype " + std::string(dtype_name(dtype)) + ", expected F32 or F64");
  for (Parameter* parameter : parameters()) {
    if (parameter->value.dtype() != dtype) parameter->set(parameter->value.value().to(dtype));
  }
}

DType Module::dtype() const {
  if (!own_.empty()) return own_.front().value.dtype();
  return parts_.empty() ? DType::F32 : parts_.front()->dtype();
}

void Module::prepare(Context& ctx) {
  for (Parameter& parameter : own_) {
    if (!parameter.product) continue;
    dispatch_float(parameter.value.dtype(), "Module::prepare", [&]<class T>(T) {
      parameter.packed = ops::PackedMatrix::pack<T>(ctx, ops::Product::ABt, parameter.value.value().view<const T, 2>());
    });
  }
  derive(ctx);
  for (Module* part : parts_) part->prepare(ctx);
}

Variable Module::apply(Context& ctx, const Variable& x, const Parameter& weight, const Parameter* bias) {
  return linear(ctx, x, weight.value, bias ? bias->value : Variable(),
                weight.packed.defined() ? &weight.packed : nullptr);
}

}  // namespace stepwell::layers
