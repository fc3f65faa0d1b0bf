// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "stepwell/core/rng.h"

namespace stepwell {

namespace {

using Function = std::function<std::vector<Variable>(const std::vector<Variable>&)>;

// Copies: an output may be a view of an input that is about to move.
std::vector<Tensor> values_of(const std::vector<Variable>& outputs) {
  std::vector<Tensor> values;
  for (const Variable& v : outputs) values.push_back(v.value().clone());
  return values;
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  const auto x = a.span<double>(), y = b.span<double>();
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// The loss differences of single elements: owns copies of the inputs, one of which is moved at a time.
class FiniteDifferences {
 public:
  FiniteDifferences(const Function& f, const std::vector<GradcheckInput>& inputs, const std::vector<Tensor>& cotangents)
      : f_(f), cotangents_(cotangents) {
    for (const GradcheckInput& input : inputs) {
      points_.push_back(input.value.clone());
      variables_.push_back(points_.back());
    }
  }

  double at(std::size_t input, std::int64_t i) {
    double& x = points_[input].span<double>()[static_cast<std::size_t>(i)];
    const double centre = x, step = 1e-6 * std::max(1.0, std::fabs(centre));
    x = centre + step;
    const double right = x;
    const std::vector<Tensor> above = evaluate();
    x = centre - step;
    const double left = x;
    const std::vector<Tensor> below = evaluate();
    x = centre;
    // Outputs are subtracted before they are summed: what does not depend on x cancels exactly.
    double difference = 0;
    for (std::size_t o = 0; o < cotangents_.size(); ++o) {
      const auto a = above[o].span<double>(), b = below[o].span<double>(), c = cotangents_[o].span<double>();
      for (std::size_t j = 0; j < a.size(); ++j) difference += (a[j] - b[j]) * c[j];
    }
    return difference / (right - left);
  }

 private:
  std::vector<Tensor> evaluate() {
    NoGrad no_grad;
    return values_of(f_(variables_));
  }

  const Function& f_;
  const std::vector<Tensor>& cotangents_;
  std::vector<Tensor> points_;
  std::vector<Variable> variables_;
};

}  // namespace

GradcheckResult gradcheck(Context& ctx, const Function& f, const std::vector<GradcheckInput>& inputs,
                          std::int64_t limit) {
  std::vector<Variable> leaves;
  for (const GradcheckInput& input : inputs) {
    STEPWELL_CHECK(input.value.defined() && input.value.dtype() == DType::F64, "gradcheck",
                   "input " + input.name + " is not F64");
    leaves.push_back(Variable::leaf(input.value.clone()));
  }
  const std::vector<Variable> outputs = f(leaves);
  std::vector<Tensor> cotangents;
  double loss = 0;
  for (const Tensor& value : values_of(outputs)) {
    cotangents.push_back(
        Rng(1).stream("cotangent").stream(cotangents.size()).uniform(value.shape(), -1, 1, DType::F64));
    loss += dot(value, cotangents.back());
  }
  const Gradients gradients = backward(ctx, outputs, cotangents);

  GradcheckResult result;
  FiniteDifferences differences(f, inputs, cotangents);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Tensor analytic = gradients.of(leaves[k]);
    const std::int64_t n = inputs[k].value.numel();
    double largest = 0;
    for (std::int64_t i = 0; analytic.defined() && i < n; ++i) largest = std::max(largest, std::fabs(analytic.at(i)));
    const double bound = 1e-6 * largest + 1e-9 * std::max(1.0, std::fabs(loss)) + inputs[k].absolute;
    const std::int64_t count = limit > 0 ? std::min(limit, n) : n;
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t i = j * n / count;
      const double exact = analytic.defined() ? analytic.at(i) : 0.0, numeric = differences.at(k, i);
      const double ratio = std::fabs(exact - numeric) / bound;
      ++result.checked;
      if (!(ratio <= 1)) result.passed = false;  // NaN is a failure too
      if (result.worst_input.empty() || (!(ratio <= result.worst) && !std::isnan(result.worst))) {
        result.worst = ratio;
        result.worst_input = inputs[k].name;
        result.worst_index = i;
        result.analytic = exact;
        result.numeric = numeric;
      }
    }
  }
  return result;
}

std::string GradcheckResult::to_string() const {
  if (checked == 0) return "no elements to compare";
  char numbers[160];
  std::snprintf(numbers, sizeof numbers, "[%lld]: analytic %.12g, numeric %.12g, %.3g of the bound",
                static_cast<long long>(worst_index), analytic, numeric, worst);
  return std::to_string(checked) + " elements, worst at " + worst_input + numbers;
}

}  // namespace stepwell
