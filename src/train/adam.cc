// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/adam.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "stepwell/ops/adam.h"

namespace stepwell::train {

namespace {

void check_range(bool good, const char* name, double value, const char* rule) {
  STEPWELL_CHECK(good, "Adam", std::string(name) + " = " + std::to_string(value) + ", expected " + rule);
}

template <class T>
Tensor one_row(std::initializer_list<T> values) {
  return Tensor::from<T>(std::span(values.begin(), values.size()), {static_cast<std::int64_t>(values.size())});
}

std::string describe(DType dtype, const Shape& shape) {
  return std::string(dtype_name(dtype)) + " " + shape.to_string();
}

}  // namespace

Adam::Adam(std::vector<layers::Parameter*> parameters, const AdamOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  check_range(options.beta1 >= 0 && options.beta1 < 1, "beta1", options.beta1, "a number in [0, 1)");
  check_range(options.beta2 >= 0 && options.beta2 < 1, "beta2", options.beta2, "a number in [0, 1)");
  check_range(options.eps > 0 && std::isfinite(options.eps), "eps", options.eps, "a positive number");
  check_range(options.weight_decay >= 0 && std::isfinite(options.weight_decay), "weight_decay", options.weight_decay,
              "a number of at least 0");
  check_range(options.clip_norm >= 0 && std::isfinite(options.clip_norm), "clip_norm", options.clip_norm,
              "a number of at least 0");
  for (const layers::Parameter* p : parameters_) {
    m_.push_back(Tensor::zeros(p->value.shape(), p->value.dtype()));
    v_.push_back(Tensor::zeros(p->value.shape(), p->value.dtype()));
  }
}

AdamReport Adam::step(Context& ctx, const Gradients& gradients, double lr) {
  std::vector<Tensor> list;
  list.reserve(parameters_.size());
  for (const layers::Parameter* p : parameters_) list.push_back(gradients.of(p->value));
  return step(ctx, list, lr);
}

AdamReport Adam::step(Context& ctx, std::span<const Tensor> gradients, double lr) {
  STEPWELL_CHECK(
      gradients.size() == parameters_.size(), "Adam::step",
      std::to_string(gradients.size()) + " gradients for " + std::to_string(parameters_.size()) + " parameters");
  check_range(lr >= 0 && std::isfinite(lr), "learning rate", lr, "a number of at least 0");
  double squares = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Variable& value = parameters_[i]->value;
    STEPWELL_CHECK(gradients[i].shape() == value.shape() && gradients[i].dtype() == value.dtype(), "Adam::step",
                   "gradient " + describe(gradients[i].dtype(), gradients[i].shape()) + " for " + parameters_[i]->name +
                       " " + describe(value.dtype(), value.shape()));
    squares += ops::sum_of_squares(ctx, gradients[i]);
  }
  AdamReport report;
  report.gradient_norm = std::sqrt(squares);
  if (!std::isfinite(report.gradient_norm)) {
    report.skipped = true;
    ++skipped_;
    return report;
  }
  report.clipped = options_.clip_norm > 0 && report.gradient_norm > options_.clip_norm;

  ++steps_;
  power1_ *= options_.beta1;
  power2_ *= options_.beta2;
  ops::AdamScalars scalars;
  scalars.gradient_scale = report.clipped ? options_.clip_norm / report.gradient_norm : 1;
  scalars.beta1 = options_.beta1;
  scalars.beta2 = options_.beta2;
  scalars.rate = lr / (1 - power1_);
  scalars.root_scale = 1 / std::sqrt(1 - power2_);
  scalars.eps = options_.eps;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    layers::Parameter& p = *parameters_[i];
    scalars.keep = p.decay ? 1 - lr * options_.weight_decay : 1;
    ops::adam_step(ctx, scalars, gradients[i], p.value.value(), m_[i], v_[i]);
    p.unprepare();
  }
  return report;
}

layers::NamedTensors Adam::state() const {
  layers::NamedTensors state;
  state.emplace_back("adam.steps", one_row<std::int64_t>({steps_}));
  state.emplace_back("adam.skipped", one_row<std::int64_t>({skipped_}));
  state.emplace_back("adam.beta_powers", one_row<double>({power1_, power2_}));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    state.emplace_back("adam.m." + parameters_[i]->name, m_[i]);
    state.emplace_back("adam.v." + parameters_[i]->name, v_[i]);
  }
  return state;
}

void Adam::set_state(const layers::NamedTensors& given) {
  std::map<std::string, const Tensor*> by_name;
  std::string faults;
  auto fault = [&faults](const std::string& text) { faults += (faults.empty() ? "" : "; ") + text; };
  for (const auto& [name, tensor] : given) {
    if (!by_name.emplace(name, &tensor).second) fault(name + " is given twice");
  }
  const layers::NamedTensors own = state();
  std::map<std::string, bool> wanted;
  for (const auto& [name, tensor] : own) {
    wanted[name] = true;
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      fault(name + " is missing");
    } else if (!(found->second->shape() == tensor.shape()) || found->second->dtype() != tensor.dtype()) {
      fault(name + " is " + describe(found->second->dtype(), found->second->shape()) + ", expected " +
            describe(tensor.dtype(), tensor.shape()));
    }
  }
  for (const auto& [name, tensor] : by_name) {
    if (!wanted.contains(name)) fault("unknown tensor " + name);
  }
  STEPWELL_CHECK(faults.empty(), "Adam::set_state", faults);

  steps_ = *by_name.at("adam.steps")->data<std::int64_t>();
  skipped_ = *by_name.at("adam.skipped")->data<std::int64_t>();
  power1_ = by_name.at("adam.beta_powers")->data<double>()[0];
  power2_ = by_name.at("adam.beta_powers")->data<double>()[1];
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    m_[i].copy_from(*by_name.at("adam.m." + parameters_[i]->name));
    v_[i].copy_from(*by_name.at("adam.v." + parameters_[i]->name));
  }
}

}  // namespace stepwell::train
