// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/ssd.h"

#include <cmath>
#include <limits>

namespace stepwell::layers {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One bound: nothing at all is `absent`.
double limit_of(ConfigReader& reader, std::string_view key, const Config& value, double absent) {
  if (value.is_null()) return absent;
  if (value.is_string()) {
    const std::string& text = value.as_string(key);
    if (text == "inf" || text == "Infinity" || text == "+inf") return kInfinity;
  } else if (value.is_number()) {
    const double number = value.as_double(key);
    if (number >= 0) return number > std::numeric_limits<float>::max() || number >= 1e30 ? kInfinity : number;
  }
  reader.reject(key, "two step sizes [low, high] of at least 0, null or \"inf\" for no bound");
}

}  // namespace

StepLimits read_step_limits(ConfigReader& reader, std::string_view key) {
  const Config pair = reader.list(key);
  StepLimits limits;
  if (pair.is_null()) return limits;
  const char* rule = "a pair [low, high] with low ≤ high";
  if (pair.as_array(key).size() != 2) reader.reject(key, rule);
  limits.low = limit_of(reader, key, pair.as_array(key)[0], 0);
  limits.high = limit_of(reader, key, pair.as_array(key)[1], kInfinity);
  if (limits.low > limits.high) reader.reject(key, rule);
  return limits;
}

Config step_limits_option(const StepLimits& limits) {
  return Config::Array{limits.low, std::isinf(limits.high) ? Config() : Config(limits.high)};
}

std::pair<Variable, Variable> ssd(Context& ctx, const SsdArguments& in, Variable state, const Segments& segments) {
  const std::int64_t L = in.x.size(0), H = in.x.size(1), P = in.x.size(2);
  Variable dt = in.dt_bias ? add(ctx, in.dt, in.dt_bias) : in.dt;
  if (in.softplus) dt = softplus(ctx, dt);
  const bool bounded = in.dt_limit.low > 0 || !std::isinf(in.dt_limit.high) || !in.softplus;
  if (bounded) dt = clamp(ctx, dt, in.dt_limit.low, in.dt_limit.high);

  GatedDeltaArguments rule;
  rule.q = in.C;
  rule.k = in.B;
  rule.v = in.x;
  rule.g = reshape(ctx, mul(ctx, dt, in.A), {L, H, 1});
  rule.w = reshape(ctx, dt, {L, H, 1});
  rule.form = in.form;
  rule.chunk = in.chunk;
  auto [y, last] = gated_delta(ctx, rule, std::move(state), segments);
  if (in.D) {
    const bool per_head = in.D.shape().rank() == 1;
    const Variable D = per_head ? reshape(ctx, repeat_heads(ctx, reshape(ctx, in.D, {1, H, 1}), P), {H, P}) : in.D;
    y = add(ctx, y, mul(ctx, in.x, D));
  }
  return {std::move(y), std::move(last)};
}

}  // namespace stepwell::layers
