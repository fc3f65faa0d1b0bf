// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/linear_attention.h"

#include <cmath>

#include "stepwell/ops/elementwise.h"

namespace stepwell::layers {

LinearAttentionConfig LinearAttentionConfig::read(std::int64_t width, const Config& options) {
  ConfigReader reader(options, "linear_attention");
  LinearAttentionConfig c;
  c.hidden_size = reader.integer("hidden_size", width, width, width);
  c.num_heads = reader.integer("num_heads", c.num_heads, 1, 16);
  c.head_dim = reader.integer("head_dim", c.hidden_size / c.num_heads, 1, 1 << 12);
  if (!reader.has("head_dim") && c.head_dim * c.num_heads != width) {
    reader.reject("num_heads", "a divisor of the width " + std::to_string(width) + ", or head_dim to be given");
  }
  reader.finish();
  return c;
}

Config LinearAttentionConfig::options() const {
  Config c;
  c.set("num_heads", num_heads);
  c.set("head_dim", head_dim);
  return c;
}

namespace {

LinearAttentionConfig checked(const LinearAttentionConfig& config) {
  return LinearAttentionConfig::read(config.hidden_size, config.options());
}
DeltaSizes sizes_of(const LinearAttentionConfig& c) {
  return {.width = c.hidden_size,
          .heads = c.num_heads,
          .value_heads = c.num_heads,
          .key_width = c.head_dim,
          .value_width = c.head_dim};
}

}  // namespace

LinearAttention::LinearAttention(const LinearAttentionConfig& config, const Rng& rng)
    : DeltaLayer(sizes_of(checked(config)), rng), config_(checked(config)) {
  log_decay_f64_ = Tensor::empty({config_.num_heads}, DType::F64);
  for (std::int64_t h = 0; h < config_.num_heads; ++h) {
    log_decay_f64_.data<double>()[h] = -std::ldexp(1.0, -5 - static_cast<int>(h));
  }
  Context ctx = Context::serial();
  ops::unary(ctx, ops::Unary::Log1p, log_decay_f64_, log_decay_f64_);
  log_decay_f32_ = log_decay_f64_.to(DType::F32);
}

LayerOutput LinearAttention::forward_rows(Context& ctx, const Variable& x, State state,
                                          const Segments& segments) const {
  const std::int64_t L = x.size(0), H = config_.num_heads;
  const Tensor& decay = dtype() == DType::F64 ? log_decay_f64_ : log_decay_f32_;
  LayerOutput out;
  GatedDeltaArguments rule =
      arguments(ctx, x, state, out.state, segments, ops::Activation::None, ops::Activation::None);
  rule.g = reshape(ctx, add(ctx, Tensor::zeros(ctx, {L, H}, x.dtype()), decay), {L, H, 1});
  out.y = finish(ctx, rule, state, out.state, segments);
  return out;
}

}  // namespace stepwell::layers
