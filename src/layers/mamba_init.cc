// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/mamba_init.h"

#include <algorithm>
#include <cmath>

#include "layers/initial_values.h"

namespace stepwell::layers {

Tensor MambaInitialiser::projection(std::string_view name, const Shape& shape, std::int64_t fan_in) const {
  if (config_.init == MambaInit::Reference) return uniform_fan_in(rng_.stream(name), shape, fan_in);
  return rng_.stream(name).normal(shape, 0, std::min(0.5, 1 / std::sqrt(static_cast<double>(fan_in))));
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
  return step_biases(rng_.stream(name), shape, config_.dt_min, config_.dt_max, config_.dt_init_floor);
}

Tensor MambaInitialiser::A_log() const {
  const std::int64_t D = config_.d_inner, N = config_.d_state;
  const Tensor row = log_of_range(N), all = Tensor::empty({D, N});
  for (std::int64_t d = 0; d < D; ++d) all.slice(0, d, 1).copy_from(row.reshape({1, N}));
  return all;
}

}  // namespace stepwell::layers
