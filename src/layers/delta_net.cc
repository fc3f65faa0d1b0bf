// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/delta_net.h"

#include <utility>

#include "layers/delta_options.h"

namespace stepwell::layers {

namespace {

constexpr const char* kType = "delta_net";
constexpr std::string_view kActivations[] = {"silu", "relu", "elu", "identity"};
constexpr std::string_view kNorms[] = {"l2", "sum"};

}  // namespace

DeltaNetConfig DeltaNetConfig::read(std::int64_t width, const Config& options) {
  ConfigReader reader(options, kType);
  DeltaNetConfig c;
  read_flat_options(reader, width, c);
  c.use_beta = reader.boolean("use_beta", c.use_beta);
  c.use_gate = reader.boolean("use_gate", c.use_gate);
  c.allow_neg_eigval = reader.boolean("allow_neg_eigval", c.allow_neg_eigval);
  c.qk_activation = static_cast<QueryKeyActivation>(reader.choice("qk_activation", "silu", kActivations));
  c.qk_norm = static_cast<QueryKeyNorm>(reader.choice("qk_norm", "l2", kNorms));
  reader.finish();
  return c;
}

Config DeltaNetConfig::options() const {
  Config out;
  write_flat_options(out, *this);
  out.set("use_beta", use_beta);
  out.set("use_gate", use_gate);
  out.set("allow_neg_eigval", allow_neg_eigval);
  out.set("qk_activation", name_in(kActivations, qk_activation));
  out.set("qk_norm", name_in(kNorms, qk_norm));
  return out;
}

DeltaNet::DeltaNet(const DeltaNetConfig& config, const Rng& rng)
    : DeltaLayer(flat_sizes(checked(kType, config)), rng), config_(checked(kType, config)) {
  const DeltaNetConfig& c = config_;
  if (c.use_beta) b_ = add_projection("b_proj", c.hidden_size, c.num_heads);
  if (c.use_gate) g_ = add_projection("g_proj", c.hidden_size, flat_sizes(c).value_width * c.num_heads);
  add_norm("o_norm");
}

// Queries or keys after the activations that a convolution does not do and the norm that the recurrence does not.
Variable DeltaNet::shaped(Context& ctx, const Variable& x) const {
  Variable y = x;
  if (config_.qk_activation == QueryKeyActivation::Relu) y = relu(ctx, y);
  if (config_.qk_activation == QueryKeyActivation::Elu) y = elu_plus_one(ctx, y);
  return config_.qk_norm == QueryKeyNorm::Sum ? sum_norm(ctx, y) : y;
}

LayerOutput DeltaNet::forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const {
  const DeltaNetConfig& c = config_;
  const bool silu = c.qk_activation == QueryKeyActivation::Silu;
  LayerOutput out;
  GatedDeltaArguments rule =
      arguments(ctx, x, state, out.state, segments, silu ? ops::Activation::Silu : ops::Activation::None);
  rule.q = shaped(ctx, rule.q);
  rule.k = shaped(ctx, rule.k);
  rule.l2norm = c.qk_norm == QueryKeyNorm::L2;
  if (c.use_beta) {
    rule.b = rule.w = gate(ctx, x, b_, c.num_heads, c.allow_neg_eigval);
  } else {
    const Tensor constant = Tensor::empty(ctx, {x.size(0), c.num_heads, 1}, x.dtype());
    constant.fill(c.allow_neg_eigval ? 2 : 1);
    rule.b = rule.w = constant;
  }
  const Variable z = c.use_gate ? project(ctx, x, g_) : Variable();
  out.y = finish(ctx, rule, state, out.state, segments, z, GateActivation::Silu);
  return out;
}

}  // namespace stepwell::layers
