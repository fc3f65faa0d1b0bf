// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/gated_linear_attention.h"

#include <limits>
#include <utility>

#include "layers/delta_options.h"

namespace stepwell::layers {

namespace {

constexpr const char* kType = "gated_linear_attention";

DeltaSizes sizes_of(const GatedLinearAttentionConfig& c) {
  DeltaSizes sizes = flat_sizes(c);
  sizes.sharing = c.num_heads / c.num_kv_heads;
  return sizes;
}

}  // namespace

GatedLinearAttentionConfig GatedLinearAttentionConfig::read(std::int64_t width, const Config& options) {
  ConfigReader reader(options, kType);
  GatedLinearAttentionConfig c;
  read_flat_options(reader, width, c);
  c.num_kv_heads = reader.integer("num_kv_heads", c.num_heads, 1, c.num_heads);
  if (c.num_heads % c.num_kv_heads != 0) {
    reader.reject("num_kv_heads", "a divisor of num_heads = " + std::to_string(c.num_heads));
  }
  c.use_output_gate = reader.boolean("use_output_gate", c.use_output_gate);
  c.gate_logit_normalizer = reader.number("gate_logit_normalizer", c.gate_logit_normalizer, 1e-6, 1e6);
  c.gate_low_rank_dim = reader.integer("gate_low_rank_dim", c.gate_low_rank_dim, 1, 1 << 12);
  if (reader.has("clamp_min")) c.clamp_min = reader.number("clamp_min", 0, -1e6, 0);
  reader.finish();
  return c;
}

Config GatedLinearAttentionConfig::options() const {
  Config out;
  write_flat_options(out, *this);
  out.set("num_kv_heads", num_kv_heads ? num_kv_heads : num_heads);
  out.set("use_output_gate", use_output_gate);
  out.set("gate_logit_normalizer", gate_logit_normalizer);
  out.set("gate_low_rank_dim", gate_low_rank_dim);
  out.set("clamp_min", clamp_min ? Config(*clamp_min) : Config());
  return out;
}

GatedLinearAttention::GatedLinearAttention(const GatedLinearAttentionConfig& config, const Rng& rng)
    : DeltaLayer(sizes_of(checked(kType, config)), rng), config_(checked(kType, config)) {
  const GatedLinearAttentionConfig& c = config_;
  const DeltaSizes sizes = sizes_of(c);
  gk_ = add_low_rank("gk_proj", c.gate_low_rank_dim, c.num_kv_heads * sizes.key_width, true);
  if (c.use_output_gate) g_ = add_projection("g_proj", c.hidden_size, c.num_heads * sizes.value_width);
  add_norm(c.use_output_gate ? "g_norm_swish_gate" : "g_norm");
}

LayerOutput GatedLinearAttention::forward_rows(Context& ctx, const Variable& x, State state,
                                               const Segments& segments) const {
  const GatedLinearAttentionConfig& c = config_;
  const auto activation = c.use_short_conv ? ops::Activation::Silu : ops::Activation::None;
  const std::int64_t sharing = c.num_heads / c.num_kv_heads;
  LayerOutput out;
  GatedDeltaArguments rule = arguments(ctx, x, state, out.state, segments, activation, activation);
  Variable g = scale(ctx, log_sigmoid(ctx, project_to_heads(ctx, x, gk_, c.num_kv_heads)), 1 / c.gate_logit_normalizer);
  if (c.clamp_min) g = clamp(ctx, g, *c.clamp_min, std::numeric_limits<double>::infinity());
  rule.g = repeat_heads(ctx, g, sharing);
  rule.k = repeat_heads(ctx, rule.k, sharing);
  rule.v = repeat_heads(ctx, rule.v, sharing);
  const Variable z = c.use_output_gate ? project(ctx, x, g_) : Variable();
  out.y = finish(ctx, rule, state, out.state, segments, z, GateActivation::Silu);
  return out;
}

}  // namespace stepwell::layers
