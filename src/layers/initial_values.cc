// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/initial_values.h"

#include <algorithm>
#include <cmath>

#include "stepwell/ops/elementwise.h"

namespace stepwell::layers {

namespace {

// f of every element, in place.
void apply_function(ops::Unary f, const Tensor& x) {
  Context ctx = Context::serial();
  ops::unary(ctx, f, x, x);
}

}  // namespace

Tensor uniform_fan_in(const Rng& rng, const Shape& shape, std::int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return rng.uniform(shape, -bound, bound);
}

Tensor log_of_uniform(const Rng& rng, const Shape& shape, double low, double high) {
  const Tensor x = rng.uniform(shape, 0, high - low, DType::F64);
  for (double& v : x.span<double>()) v = high - v;
  apply_function(ops::Unary::Log, x);
  return x.to(DType::F32);
}

Tensor log_of_range(std::int64_t n, std::int64_t first) {
  const Tensor x = Tensor::empty({n}, DType::F64);
  for (std::int64_t i = 0; i < n; ++i) x.data<double>()[i] = static_cast<double>(first + i);
  apply_function(ops::Unary::Log, x);
  return x.to(DType::F32);
}

Tensor inverse_softplus(const Tensor& steps) {
  const Tensor x = steps.clone();
  for (double& v : x.span<double>()) v = -v;
  apply_function(ops::Unary::Expm1, x);
  for (double& v : x.span<double>()) v = -v;
  apply_function(ops::Unary::Log, x);
  const auto v = steps.span<double>();
  const auto y = x.span<double>();
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = v[i] > 20 ? v[i] : v[i] + y[i];
  return x;
}

Tensor step_biases(const Rng& rng, const Shape& shape, double low, double high, double floor) {
  const double limits[] = {low, high};
  const Tensor logs = Tensor::from<double>(limits, {2});
  apply_function(ops::Unary::Log, logs);
  const Tensor steps = rng.uniform(shape, logs.at(0), logs.at(1), DType::F64);
  apply_function(ops::Unary::Exp, steps);
  for (double& v : steps.span<double>()) v = std::max(v, floor);
  return inverse_softplus(steps).to(DType::F32);
}

}  // namespace stepwell::layers
