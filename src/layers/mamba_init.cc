// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/mamba_init.h"

#include <algorithm>
#include <cmath>

#include "stepwell/ops/elementwise.h"

namespace stepwell::layers {

namespace {

// f of every element, in place, with the library's own functions: the same bits on every machine, unlike libm's.
void apply_function(ops::Unary f, const Tensor& x) {
  Context ctx = Context::serial();
  ops::unary(ctx, f, x, x);
}

// The pre-activation whose softplus is the step v: v + log(1 − exp(−v)) (v itself above softplus's threshold 20).
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

}  // namespace

Tensor MambaInitialiser::projection(std::string_view name, const Shape& shape, std::int64_t fan_in) const {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  if (config_.init == MambaInit::Reference) return rng_.stream(name).uniform(shape, -bound, bound);
  return rng_.stream(name).normal(shape, 0, std::min(0.5, bound));
}

Tensor MambaInitialiser::conv_bias(std::string_view name) const {
  if (config_.init != MambaInit::Reference) return Tensor::zeros({config_.d_inner});
  return projection(name, {config_.d_inner}, config_.d_conv);
}

Tensor MambaInitialiser::step_weight(std::string_view name) const {
  const Shape shape{config_.d_inner, config_.dt_rank};
  if (config_.init != MambaInit::Reference) return projection(name, shape, config_.dt_rank);
  const double bound = config_.dt_scale / std::sqrt(static_cast<double>(config_.dt_rank));
  if (config_.dt_init == MambaStepInit::Constant) return Tensor::full(shape, bound);
  return rng_.stream(name).uniform(shape, -bound, bound);
}

Tensor MambaInitialiser::step_bias(std::string_view name) const {
  const Shape shape{config_.d_inner};
  if (config_.init == MambaInit::Active) return Tensor::zeros(shape);
  if (config_.init == MambaInit::Stable) return inverse_softplus(Tensor::full(shape, 0.01, DType::F64)).to(DType::F32);
  const double limits[] = {config_.dt_min, config_.dt_max};
  const Tensor logs = Tensor::from<double>(limits, {2});
  apply_function(ops::Unary::Log, logs);
  const Tensor steps = rng_.stream(name).uniform(shape, logs.at(0), logs.at(1), DType::F64);
  apply_function(ops::Unary::Exp, steps);
  for (double& v : steps.span<double>()) v = std::max(v, config_.dt_init_floor);
  return inverse_softplus(steps).to(DType::F32);
}

Tensor MambaInitialiser::A_log() const {
  const std::int64_t D = config_.d_inner, N = config_.d_state;
  const Tensor row = Tensor::empty({N}, DType::F64);
  for (std::int64_t n = 0; n < N; ++n) row.data<double>()[n] = static_cast<double>(n + 1);
  apply_function(ops::Unary::Log, row);
  const Tensor rounded = row.to(DType::F32), all = Tensor::empty({D, N});
  for (std::int64_t d = 0; d < D; ++d) all.slice(0, d, 1).copy_from(rounded.reshape({1, N}));
  return all;
}

}  // namespace stepwell::layers
