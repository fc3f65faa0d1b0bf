// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/delta_layer.h"

#include <cmath>
#include <utility>

#include "layers/initial_values.h"

namespace stepwell::layers {

DeltaLayer::DeltaLayer(const DeltaSizes& sizes, const Rng& rng) : sizes_(sizes), rng_(rng) {
  const DeltaSizes& s = sizes_;
  q_ = add_branch("q", s.heads * s.key_width);
  k_ = add_branch("k", s.heads / s.sharing * s.key_width);
  v_ = add_branch("v", s.value_heads / s.sharing * s.value_width);
  o_ = add_projection("o_proj", s.value_heads * s.value_width, s.width);
  fields_.push_back(
      {"recurrent_state", {s.value_heads, ops::state_units(s.value_width), s.key_width, ops::kStateUnit}});
}

// ----------------------------------------------------------------------------------------------------- Parameters

Tensor DeltaLayer::first_matrix(const std::string& name, std::int64_t out, std::int64_t in) const {
  const Rng rng = rng_.stream(name);
  switch (sizes_.init) {
    case DeltaInit::Uniform: break;
    case DeltaInit::Normal: return rng.normal({out, in}, 0, 0.02);
    case DeltaInit::Xavier: {
      const double bound = std::ldexp(std::sqrt(0.5), -2) * std::sqrt(6 / static_cast<double>(in + out));
      return rng.uniform({out, in}, -bound, bound);
    }
  }
  return uniform_fan_in(rng, {out, in}, in);
}

DeltaLayer::Projection DeltaLayer::add_projection(const std::string& name, std::int64_t in, std::int64_t out) {
  const std::string weight = name + ".weight";
  return {.weight = &add_matrix(weight, first_matrix(weight, out, in))};
}

DeltaLayer::Projection DeltaLayer::add_low_rank(const std::string& name, std::int64_t rank, std::int64_t out,
                                                bool bias) {
  Projection p = add_projection(name + ".1", rank, out);
  p.narrow = add_projection(name + ".0", sizes_.width, rank).weight;
  if (bias) {
    const std::string full = name + ".1.bias";
    const bool uniform = sizes_.init == DeltaInit::Uniform;
    p.bias =
        &add_parameter(full, uniform ? uniform_fan_in(rng_.stream(full), {out}, rank) : Tensor::zeros({out}), false);
  }
  return p;
}

DeltaLayer::Branch DeltaLayer::add_branch(const char* letter, std::int64_t channels) {
  static constexpr std::string_view kStates[] = {"conv_state_q", "conv_state_k", "conv_state_v"};
  const DeltaSizes& s = sizes_;
  const std::string name = std::string(letter) + "_conv1d";
  Branch branch{.projection = add_projection(std::string(letter) + "_proj", s.width, channels)};
  if (s.conv_size == 0) return branch;
  const auto first = [&](const std::string& full, const Shape& shape) {
    return s.init == DeltaInit::Normal ? rng_.stream(full).normal(shape, 0, 0.02)
                                       : uniform_fan_in(rng_.stream(full), shape, s.conv_size);
  };
  const std::string weight = name + ".weight", bias = name + ".bias";
  branch.conv = &add_parameter(weight, first(weight, {channels, 1, s.conv_size}));
  if (s.conv_bias) {
    const Shape shape = {channels};
    const bool uniform = s.init == DeltaInit::Uniform;
    branch.conv_bias = &add_parameter(bias, uniform ? first(bias, shape) : Tensor::zeros(shape), false);
  }
  fields_.push_back({kStates[fields_.size()], {s.conv_size, channels}});
  return branch;
}

void DeltaLayer::add_decay(std::int64_t heads, std::int64_t channels, double low, double high) {
  const Tensor A_log = high == 0 ? Tensor::zeros({heads}) : log_of_uniform(rng_.stream("A_log"), {heads}, low, high);
  A_log_ = &add_parameter("A_log", A_log, false);
  dt_bias_ = &add_parameter("dt_bias", step_biases(rng_.stream("dt_bias"), {heads * channels}, 1e-3, 0.1, 1e-4), false);
}

void DeltaLayer::add_norm(const std::string& name) {
  norm_ = &add_parameter(name + ".weight", Tensor::full({sizes_.value_width}, 1.0), false);
}

// -------------------------------------------------------------------------------------------------------- Forward

Variable DeltaLayer::project(Context& ctx, const Variable& x, const Projection& p) const {
  return apply(ctx, p.narrow ? apply(ctx, x, *p.narrow, nullptr) : x, *p.weight, p.bias);
}

Variable DeltaLayer::project_to_heads(Context& ctx, const Variable& x, const Projection& p, std::int64_t heads) const {
  const Variable y = project(ctx, x, p);
  return reshape(ctx, y, {y.size(0), heads, y.size(1) / heads});
}

Variable DeltaLayer::gate(Context& ctx, const Variable& x, const Projection& p, std::int64_t heads,
                          bool doubled) const {
  const Variable open = sigmoid(ctx, project_to_heads(ctx, x, p, heads));
  return doubled ? scale(ctx, open, 2) : open;
}

Variable DeltaLayer::run_branch(Context& ctx, const Variable& x, const Branch& branch, ops::Activation activation,
                                State& state, State& last, const Segments& segments) const {
  Variable y = project(ctx, x, branch.projection);
  if (!branch.conv) return activation == ops::Activation::Silu ? silu(ctx, y) : y;
  auto [convolved, window] =
      short_conv(ctx, y, branch.conv->value, branch.conv_bias ? branch.conv_bias->value : Variable(),
                 state.take(last.count()), segments, activation);
  last.push(std::move(window));
  return convolved;
}

GatedDeltaArguments DeltaLayer::arguments(Context& ctx, const Variable& x, State& state, State& last,
                                          const Segments& segments, ops::Activation query_key,
                                          ops::Activation value) const {
  const DeltaSizes& s = sizes_;
  const auto heads = [&](const Variable& y, std::int64_t width) {
    return reshape(ctx, y, {y.size(0), y.size(1) / width, width});
  };
  GatedDeltaArguments rule;
  rule.q = heads(run_branch(ctx, x, q_, query_key, state, last, segments), s.key_width);
  rule.k = heads(run_branch(ctx, x, k_, query_key, state, last, segments), s.key_width);
  rule.v = heads(run_branch(ctx, x, v_, value, state, last, segments), s.value_width);
  rule.scale = 1 / std::sqrt(static_cast<double>(s.key_width));
  if (A_log_) {
    rule.A_log = A_log_->value;
    rule.dt_bias = dt_bias_->value;
  }
  return rule;
}

Variable DeltaLayer::finish(Context& ctx, const GatedDeltaArguments& rule, State& state, State& last,
                            const Segments& segments, const Variable& z, GateActivation activation) const {
  auto [o, after] = gated_delta(ctx, rule, state.take(last.count()), segments);
  last.push(std::move(after));
  Variable y = o;
  if (z) {
    const Variable gate = reshape(ctx, z, o.shape());
    y = gated_rms_norm(ctx, o, gate, norm_->value, sizes_.norm_eps, GateOrder::After, 0, activation);
  } else if (norm_) {
    y = rms_norm(ctx, o, norm_->value, sizes_.norm_eps);
  }
  return project(ctx, reshape(ctx, y, {o.size(0), o.size(1) * o.size(2)}), o_);
}

// ---------------------------------------------------------------------------------------------------------- State

std::vector<Variable> DeltaLayer::export_state(Context& ctx, const State& state) const {
  std::vector<Variable> fields = Layer::export_state(ctx, state);
  for (Variable& window : std::span(fields).first(fields.size() - 1)) window = transpose_last2(ctx, window);
  fields.back() = unpack_state(ctx, fields.back(), sizes_.value_width);
  return fields;
}

State DeltaLayer::import_state(Context& ctx, std::vector<Variable> fields) const {
  STEPWELL_CHECK(fields.size() == fields_.size(), type(),
                 "a state of " + std::to_string(fields.size()) + " fields, expected " + std::to_string(fields_.size()));
  for (Variable& window : std::span(fields).first(fields.size() - 1)) window = transpose_last2(ctx, window);
  const Variable& recurrent = fields.back();
  STEPWELL_CHECK(recurrent && recurrent.shape().rank() == 4 && recurrent.size(3) == sizes_.value_width, type(),
                 "recurrent_state is " + recurrent.shape().to_string() + ", expected [sequences, " +
                     std::to_string(sizes_.value_heads) + ", " + std::to_string(sizes_.key_width) + ", " +
                     std::to_string(sizes_.value_width) + "]");
  fields.back() = pack_state(ctx, fields.back());
  return Layer::import_state(ctx, std::move(fields));
}

}  // namespace stepwell::layers
