// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/gated_delta_net2.h"

#include <utility>

#include "layers/delta_options.h"

namespace stepwell::layers {

namespace {

constexpr const char* kType = "gated_delta_net2";

}  // namespace

GatedDeltaNet2Config GatedDeltaNet2Config::read(std::int64_t width, const Config& options) {
  ConfigReader reader(options, kType);
  GatedDeltaNet2Config c;
  read_grouped_options(reader, width, c);
  read_safe_gate(reader, c);
  reader.finish();
  return c;
}

Config GatedDeltaNet2Config::options() const {
  Config out;
  write_grouped_options(out, *this);
  write_safe_gate(out, *this);
  return out;
}

GatedDeltaNet2::GatedDeltaNet2(const GatedDeltaNet2Config& config, const Rng& rng)
    : DeltaLayer(grouped_sizes(checked(kType, config)), rng), config_(checked(kType, config)) {
  const GatedDeltaNet2Config& c = config_;
  const std::int64_t V = value_width(c), keys = c.num_heads * c.head_dim, values = c.num_v_heads * V;
  f_ = add_low_rank("f_proj", V, keys, false);
  add_decay(c.num_heads, c.head_dim, 1, c.safe_gate ? 0 : 16);
  b_ = add_projection("b_proj", c.hidden_size, keys);
  w_ = add_projection("w_proj", c.hidden_size, values);
  g_ = add_low_rank("g_proj", V, values, true);
  add_norm("o_norm");
}

LayerOutput GatedDeltaNet2::forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const {
  const GatedDeltaNet2Config& c = config_;
  LayerOutput out;
  GatedDeltaArguments rule = arguments(ctx, x, state, out.state, segments);
  rule.l2norm = true;
  rule.g = project_to_heads(ctx, x, f_, c.num_heads);
  set_safe_gate(rule, c);
  rule.b = gate(ctx, x, b_, c.num_heads, c.allow_neg_eigval);
  rule.w = gate(ctx, x, w_, c.num_v_heads);
  out.y = finish(ctx, rule, state, out.state, segments, project(ctx, x, g_), c.output_gate);
  return out;
}

}  // namespace stepwell::layers
