// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/set_encoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "stepwell/ops/elementwise.h"

#include "layers/initial_values.h"

namespace stepwell::memory {

namespace {

constexpr std::array<std::string_view, 3> kBounds = {"none", "tanh", "rms"};
constexpr std::int64_t kMost = 1 << 20;
constexpr double kRmsEps = 1e-6;

// f of every element, the library's own: the same bits on every machine.
Tensor mapped(ops::Unary f, const Tensor& x) {
  Context ctx = Context::serial();
  const Tensor y = Tensor::empty(x.shape(), x.dtype());
  ops::unary(ctx, f, x, y);
  return y;
}

// Row a: sin and cos of a / 10000^(2k/m), in turn.
Tensor sinusoids(std::int64_t ages, std::int64_t m) {
  const std::int64_t pairs = (m + 1) / 2;
  const Tensor exponents = Tensor::empty({pairs}, DType::F64);
  for (std::int64_t i = 0; i < pairs; ++i) {
    exponents.data<double>()[i] = -2 * static_cast<double>(i) / static_cast<double>(m) * 4 * std::numbers::ln10;
  }
  const Tensor rates = mapped(ops::Unary::Exp, exponents), angles = Tensor::empty({ages, pairs}, DType::F64);
  for (std::int64_t a = 0; a < ages; ++a) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      angles.data<double>()[a * pairs + i] = static_cast<double>(a) * rates.data<double>()[i];
    }
  }
  const Tensor sines = mapped(ops::Unary::Sin, angles), cosines = mapped(ops::Unary::Cos, angles);
  const Tensor table = Tensor::empty({ages, m}, DType::F64);
  for (std::int64_t a = 0; a < ages; ++a) {
    for (std::int64_t c = 0; c < m; ++c) {
      table.data<double>()[a * m + c] = (c % 2 == 0 ? sines : cosines).data<double>()[a * pairs + c / 2];
    }
  }
  return table;
}

// 2^(−age / half_life).
Tensor halvings(std::int64_t ages, double half_life) {
  const Tensor exponents = Tensor::empty({ages}, DType::F64);
  for (std::int64_t a = 0; a < ages; ++a) {
    exponents.data<double>()[a] = -static_cast<double>(a) * std::numbers::ln2 / half_life;
  }
  return mapped(ops::Unary::Exp, exponents);
}

}  // namespace

SetEncoderConfig SetEncoderConfig::read(std::int64_t token_width, std::int64_t output_width, const Config& options) {
  ConfigReader reader(options, "teacher");
  SetEncoderConfig c;
  c.token_width = token_width;
  c.output_width = output_width;
  c.embed_width = reader.integer("embed_width", c.embed_width, 1, kMost);
  c.memory_width = reader.integer("memory_width", c.memory_width, 1, kMost);
  c.window = reader.integer("window", c.window, 1, kMost);
  c.heads = reader.integer("heads", c.heads, 1, c.embed_width);
  if (c.embed_width % c.heads != 0) reader.reject("heads", "a divisor of embed_width");
  c.recency = reader.boolean("recency", c.recency);
  c.half_life = reader.number("half_life", c.half_life, 0, 1e9);
  c.bound = static_cast<MemoryBound>(reader.choice("bound", "none", kBounds));
  reader.finish();
  return c;
}

Config SetEncoderConfig::options() const {
  Config c;
  c.set("embed_width", embed_width);
  c.set("memory_width", memory_width);
  c.set("window", window);
  c.set("heads", heads);
  c.set("recency", recency);
  c.set("half_life", half_life);
  c.set("bound", std::string(kBounds[static_cast<std::size_t>(bound)]));
  return c;
}

SetEncoderTeacher::SetEncoderTeacher(const SetEncoderConfig& given, const Rng& rng) {
  STEPWELL_CHECK(given.token_width >= 1 && given.output_width >= 0, "SetEncoderTeacher",
                 "token_width " + std::to_string(given.token_width) + " and output_width " +
                     std::to_string(given.output_width) + ", expected at least 1 and at least 0");
  config_ = SetEncoderConfig::read(given.token_width, given.output_width == 0 ? given.token_width : given.output_width,
                                   given.options());
  const std::int64_t m = config_.embed_width;
  embed_ =
      &add_matrix("embed", layers::uniform_fan_in(rng.stream("embed"), {m, config_.token_width}, config_.token_width));
  q_ = &add_matrix("attn.q", layers::uniform_fan_in(rng.stream("attn.q"), {m, m}, m));
  k_ = &add_matrix("attn.k", layers::uniform_fan_in(rng.stream("attn.k"), {m, m}, m));
  v_ = &add_matrix("attn.v", layers::uniform_fan_in(rng.stream("attn.v"), {m, m}, m));
  memory_ = &add_matrix("memory", layers::uniform_fan_in(rng.stream("memory"), {config_.memory_width, m}, m));
  decoder_ =
      &add_matrix("decoder", layers::uniform_fan_in(rng.stream("decoder"), {config_.output_width, config_.memory_width},
                                                    config_.memory_width));
  if (config_.recency) {
    timestamps_ = sinusoids(config_.window, m);
    const double quarter = static_cast<double>(config_.window) / 4;
    weights_ = halvings(config_.window, config_.half_life > 0 ? config_.half_life : quarter);
  }
}

Variable SetEncoderTeacher::encode(Context& ctx, const Variable& x, std::span<const ops::RowWindow> windows) const {
  STEPWELL_CHECK(x.defined() && x.shape().rank() == 2 && x.size(1) == config_.token_width && x.dtype() == dtype(),
                 "SetEncoderTeacher",
                 "x is " + x.shape().to_string() + ", expected [rows, " + std::to_string(config_.token_width) +
                     "] of the parameters' dtype");
  PooledAttentionArguments in;
  in.e = apply(ctx, x, *embed_, nullptr);
  in.q = apply(ctx, in.e, *q_, nullptr);
  in.k = apply(ctx, in.e, *k_, nullptr);
  in.v = apply(ctx, in.e, *v_, nullptr);
  in.heads = config_.heads;
  if (config_.recency) {
    in.age_e = timestamps_.to(dtype());
    in.age_q = apply(ctx, in.age_e, *q_, nullptr);
    in.age_k = apply(ctx, in.age_e, *k_, nullptr);
    in.age_v = apply(ctx, in.age_e, *v_, nullptr);
    in.weight = weights_.to(dtype());
  }
  for (const ops::RowWindow& window : windows) {
    STEPWELL_CHECK(
        window.length <= config_.window, "SetEncoderTeacher",
        "a window of " + std::to_string(window.length) + " tokens, expected at most " + std::to_string(config_.window));
  }
  Variable memory = apply(ctx, pooled_attention(ctx, in, windows), *memory_, nullptr);
  switch (config_.bound) {
    case MemoryBound::Tanh: return tanh(ctx, memory);
    case MemoryBound::Rms: return rms_norm(ctx, memory, {}, kRmsEps);
    case MemoryBound::None: break;
  }
  return memory;
}

Variable SetEncoderTeacher::encode(Context& ctx, const Variable& x) const {
  STEPWELL_CHECK(x.defined() && x.shape().rank() == 3, "SetEncoderTeacher",
                 "x is " + x.shape().to_string() + ", expected [batch, window, token]");
  std::vector<ops::RowWindow> windows;
  for (std::int64_t b = 0; b < x.size(0); ++b) windows.push_back({b * x.size(1), x.size(1)});
  return encode(ctx, reshape(ctx, x, {x.size(0) * x.size(1), x.size(2)}), windows);
}

Tensor SetEncoderTeacher::encode_trajectory(Context& ctx, const Tensor& x) const {
  STEPWELL_CHECK(x.defined() && x.rank() == 3, "SetEncoderTeacher",
                 "x is " + x.shape().to_string() + ", expected [batch, time, token]");
  NoGrad no_grad;
  const std::int64_t B = x.size(0), T = x.size(1);
  std::vector<ops::RowWindow> windows;
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t t = 0; t < T; ++t) {
      const std::int64_t length = std::min(t + 1, config_.window);
      windows.push_back({b * T + t + 1 - length, length});
    }
  }
  const Tensor rows = x.contiguous(ctx).reshape({B * T, x.size(2)});
  return encode(ctx, rows, windows).value().reshape({B, T, config_.memory_width});
}

Variable SetEncoderTeacher::predict(Context& ctx, const Variable& memory) const {
  return apply(ctx, memory, *decoder_, nullptr);
}

UpdateReport SetEncoderTeacher::train_step(Context& ctx, const Tensor& windows, const Tensor& next, double lr) {
  const Variable loss = mse_loss(ctx, predict(ctx, encode(ctx, windows)), next);
  const train::AdamReport adam = optimiser_.step(ctx, parameters(), loss, lr);
  UpdateReport report;
  report.readout_loss = loss.value().at(0);
  report.gradient_norm = adam.gradient_norm;
  report.clipped = adam.clipped;
  report.skipped = adam.skipped;
  return report;
}

}  // namespace stepwell::memory
