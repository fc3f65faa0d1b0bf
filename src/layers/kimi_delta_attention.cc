// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/kimi_delta_attention.h"

#include <utility>

#include "layers/delta_options.h"

namespace stepwell::layers {

namespace {

constexpr const char* kType = "kimi_delta_attention";

}  // namespace

KimiDeltaAttentionConfig KimiDeltaAttentionConfig::read(std::int64_t width, const Config& options) {
  ConfigReader reader(options, kType);
  KimiDeltaAttentionConfig c;
  read_grouped_options(reader, width, c);
  read_safe_gate(reader, c);
  reader.finish();
  return c;
}

Config KimiDeltaAttentionConfig::options() const {
  Config out;
  write_grouped_options(out, *this);
  write_safe_gate(out, *this);
  return out;
}

KimiDeltaAttention::KimiDeltaAttention(const KimiDeltaAttentionConfig& config, const Rng& rng)
    : DeltaLayer(grouped_sizes(checked(kType, config)), rng), config_(checked(kType, config)) {
  const KimiDeltaAttentionConfig& c = config_;
  const std::int64_t V = value_width(c), values = c.num_v_heads * V;
  f_ = add_low_rank("f_proj", V, c.num_v_heads * c.head_dim, false);
  add_decay(c.num_v_heads, c.head_dim, 1, c.safe_gate ? 0 : 16);
  b_ = add_projection("b_proj", c.hidden_size, c.num_v_heads);
  g_ = add_low_rank("g_proj", V, values, true);
  add_norm("o_norm");
}

LayerOutput KimiDeltaAttention::forward_rows(Context& ctx, const Variable& x, State state,
                                             const Segments& segments) const {
  const KimiDeltaAttentionConfig& c = config_;
  LayerOutput out;
  GatedDeltaArguments rule = arguments(ctx, x, state, out.state, segments);
  rule.l2norm = true;
  rule.g = project_to_heads(ctx, x, f_, c.num_v_heads);
  set_safe_gate(rule, c);
  rule.b = rule.w = gate(ctx, x, b_, c.num_v_heads, c.allow_neg_eigval);
  out.y = finish(ctx, rule, state, out.state, segments, project(ctx, x, g_), c.output_gate);
  return out;
}

}  // namespace stepwell::layers
