// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/gated_delta_net.h"

#include <utility>

#include "layers/delta_options.h"

namespace stepwell::layers {

namespace {

constexpr const char* kType = "gated_delta_net";

}  // namespace

GatedDeltaNetConfig GatedDeltaNetConfig::read(std::int64_t width, const Config& options) {
  ConfigReader reader(options, kType);
  GatedDeltaNetConfig c;
  read_grouped_options(reader, width, c);
  c.use_gate = reader.boolean("use_gate", c.use_gate);
  reader.finish();
  return c;
}

Config GatedDeltaNetConfig::options() const {
  Config out;
  write_grouped_options(out, *this);
  out.set("use_gate", use_gate);
  return out;
}

GatedDeltaNet::GatedDeltaNet(const GatedDeltaNetConfig& config, const Rng& rng)
    : DeltaLayer(grouped_sizes(checked(kType, config)), rng), config_(checked(kType, config)) {
  const GatedDeltaNetConfig& c = config_;
  a_ = add_projection("a_proj", c.hidden_size, c.num_v_heads);
  add_decay(c.num_v_heads, 1, 0, 16);
  b_ = add_projection("b_proj", c.hidden_size, c.num_v_heads);
  if (c.use_gate) g_ = add_projection("g_proj", c.hidden_size, c.num_v_heads * value_width(c));
  add_norm("o_norm");
}

LayerOutput GatedDeltaNet::forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const {
  const GatedDeltaNetConfig& c = config_;
  LayerOutput out;
  GatedDeltaArguments rule = arguments(ctx, x, state, out.state, segments);
  rule.l2norm = true;
  rule.g = project_to_heads(ctx, x, a_, c.num_v_heads);
  rule.gate = ops::DecayGate::Softplus;
  rule.b = rule.w = gate(ctx, x, b_, c.num_v_heads, c.allow_neg_eigval);
  const Variable z = c.use_gate ? project(ctx, x, g_) : Variable();
  out.y = finish(ctx, rule, state, out.state, segments, z, c.output_gate);
  return out;
}

}  // namespace stepwell::layers
