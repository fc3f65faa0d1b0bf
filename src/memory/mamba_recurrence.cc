// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/mamba_recurrence.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace stepwell::memory {

namespace {

const Tensor* find(const layers::NamedTensors& tensors, std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [name](const auto& t) { return t.first == name; });
  return found == tensors.end() ? nullptr : &found->second;
}

const Tensor& matrix(const layers::NamedTensors& tensors, std::string_view name) {
  const Tensor* t = find(tensors, name);
  STEPWELL_CHECK(t && t->defined() && t->rank() >= 2, "MambaRecurrence",
                 std::string(name) + " is " + (t && t->defined() ? t->shape().to_string() : "missing") +
                     ", expected the matrix of a Mamba block");
  return *t;
}

}  // namespace

MambaRecurrence::MambaRecurrence(Context& ctx, const layers::NamedTensors& tensors) {
  layers::MambaConfig config;
  config.d_model = matrix(tensors, "in_proj.weight").size(1);
  config.d_inner = matrix(tensors, "A_log").size(0);
  config.d_state = matrix(tensors, "A_log").size(1);
  config.d_conv = matrix(tensors, "conv1d.weight").size(-1);
  config.dt_rank = matrix(tensors, "dt_proj.weight").size(1);
  config.bias = find(tensors, "in_proj.bias") != nullptr;
  config.conv_bias = find(tensors, "conv1d.bias") != nullptr;
  block_ = std::make_unique<layers::Mamba>(config, Rng(0));
  block_->set_named_parameters(tensors);
  block_->prepare(ctx);
}

Tensor MambaRecurrence::step(Context& ctx, layers::State& state, const Tensor& x) const {
  STEPWELL_CHECK(x.defined() && x.rank() == 2, "MambaRecurrence",
                 "x is " + x.shape().to_string() + ", expected [batch, width]");
  NoGrad no_grad;
  layers::LayerOutput out =
      block_->forward(ctx, x.contiguous(ctx).reshape({x.size(0), 1, x.size(1)}), std::move(state));
  state = std::move(out.state);
  return out.y.value().reshape({x.size(0), block_->width()});
}

}  // namespace stepwell::memory
