// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/linear_attention.h"

#include <cmath>
#include <utility>

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

LinearAttention::LinearAttention(const LinearAttentionConfig& config, const Rng& rng)
    : config_(LinearAttentionConfig::read(config.hidden_size, config.options())) {
  const std::int64_t M = config_.hidden_size, H = config_.num_heads, K = config_.head_dim;
  fields_ = {{"recurrent_state", {H, K, K}}};
  decay_f64_ = Tensor::empty({H}, DType::F64);
  for (std::int64_t h = 0; h < H; ++h) {
    decay_f64_.data<double>()[h] = 1 - std::ldexp(1.0, -5 - static_cast<int>(h));
  }
  decay_f32_ = decay_f64_.to(DType::F32);
  const auto projection = [&](const char* name, std::int64_t out, std::int64_t in) {
    const double bound = 1 / std::sqrt(static_cast<double>(in));
    return &add_matrix(name, rng.stream(name).uniform({out, in}, -bound, bound));
  };
  q_proj_ = projection("q_proj.weight", H * K, M);
  k_proj_ = projection("k_proj.weight", H * K, M);
  v_proj_ = projection("v_proj.weight", H * K, M);
  o_proj_ = projection("o_proj.weight", M, H * K);
}

LayerOutput LinearAttention::forward_rows(Context& ctx, const Variable& x, State state,
                                          const Segments& segments) const {
  const std::int64_t H = config_.num_heads, K = config_.head_dim;
  const auto heads = [&](const Parameter& weight) {
    return reshape(ctx, apply(ctx, x, weight, nullptr), {x.size(0), H, K});
  };
  const Tensor& decay = dtype() == DType::F64 ? decay_f64_ : decay_f32_;
  auto [o, last] = linear_attention(ctx, heads(*q_proj_), heads(*k_proj_), heads(*v_proj_), decay,
                                    1 / std::sqrt(static_cast<double>(K)), state.take(0), segments);
  LayerOutput out;
  out.y = apply(ctx, reshape(ctx, o, {x.size(0), H * K}), *o_proj_, nullptr);
  out.state.push(std::move(last));
  return out;
}

}  // namespace stepwell::layers
