// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/mlstm.h"

#include <array>
#include <limits>
#include <utility>

#include "layers/mlstm_state.h"
#include "layers/xlstm_init.h"

namespace stepwell::layers {

namespace {

constexpr std::int64_t kMaxWidth = 1 << 20;
constexpr std::string_view kInits[] = {"reference", "active"};
constexpr std::string_view kStarts[] = {"zero", "minus_infinity"};
constexpr std::string_view kScales[] = {"q", "k"};

template <class E>
std::string name_in(std::span<const std::string_view> names, E value) {
  return std::string(names[static_cast<std::size_t>(value)]);
}

}  // namespace

MlstmConfig MlstmConfig::read(std::int64_t width, const Config& options) {
  ConfigReader reader(options, "mlstm");
  MlstmConfig c;
  c.embedding_dim = reader.integer("embedding_dim", width, width, width);
  c.num_heads = reader.integer("num_heads", c.num_heads, 1, 1 << 12);
  c.conv1d_kernel_size = reader.integer("conv1d_kernel_size", c.conv1d_kernel_size, 1, 1 << 12);
  c.qkv_proj_blocksize = reader.integer("qkv_proj_blocksize", c.qkv_proj_blocksize, 1, kMaxWidth);
  c.proj_factor = reader.number("proj_factor", c.proj_factor, 1e-3, 1 << 10);
  const std::int64_t multiple =
      reader.integer("round_proj_up_to_multiple_of", c.round_proj_up_to_multiple_of, 1, kMaxWidth);
  c.round_proj_up_to_multiple_of = multiple;
  c.round_proj_up_dim_up = reader.boolean("round_proj_up_dim_up", c.round_proj_up_dim_up);
  const double units = c.proj_factor * static_cast<double>(width) / static_cast<double>(multiple);
  const auto rounded = static_cast<std::int64_t>(c.round_proj_up_dim_up ? std::ceil(units) : std::floor(units));
  c.inner_dim = reader.integer("inner_dim", rounded * multiple, 1, kMaxWidth);
  const std::string is_inner = ": the inner width " + std::to_string(c.inner_dim);
  if (c.inner_dim < 1 || c.inner_dim > kMaxWidth)
    reader.reject("proj_factor", "an inner width from 1 to " + std::to_string(kMaxWidth));
  if (c.inner_dim % c.num_heads != 0) reader.reject("num_heads", "a divisor of inner_dim" + is_inner);
  if (c.inner_dim % c.qkv_proj_blocksize != 0) reader.reject("qkv_proj_blocksize", "a divisor of inner_dim" + is_inner);
  c.bias = reader.boolean("bias", c.bias);
  c.norm_eps = reader.number("norm_eps", c.norm_eps, 0, 1);
  c.eps = reader.number("eps", c.eps, 0, 1);
  c.m0 = static_cast<FirstStabiliser>(reader.choice("m0", "zero", kStarts));
  c.state_scale = static_cast<StateScale>(reader.choice("state_scale", "q", kScales));
  c.num_blocks = reader.integer("num_blocks", c.num_blocks, 1, 1 << 12);
  c.init = static_cast<GateInit>(reader.choice("init", "reference", kInits));
  reader.ignore("context_length");
  reader.finish();
  return c;
}

Config MlstmConfig::options() const {
  Config c;
  c.set("num_heads", num_heads);
  c.set("conv1d_kernel_size", conv1d_kernel_size);
  c.set("qkv_proj_blocksize", qkv_proj_blocksize);
  c.set("proj_factor", proj_factor);
  c.set("round_proj_up_to_multiple_of", round_proj_up_to_multiple_of);
  c.set("round_proj_up_dim_up", round_proj_up_dim_up);
  if (inner_dim > 0) c.set("inner_dim", inner_dim);
  c.set("bias", bias);
  c.set("norm_eps", norm_eps);
  c.set("eps", eps);
  c.set("m0", name_in(kStarts, m0));
  c.set("state_scale", name_in(kScales, state_scale));
  c.set("num_blocks", num_blocks);
  c.set("init", name_in(kInits, init));
  return c;
}

Mlstm::Mlstm(const MlstmConfig& config, const Rng& rng)
    : config_(MlstmConfig::read(config.embedding_dim, config.options())) {
  const MlstmConfig& c = config_;
  const std::int64_t E = c.embedding_dim, I = c.inner_dim, H = c.num_heads, p = c.qkv_proj_blocksize;
  fields_ = mlstm_state_fields(H, I / H, I / H);
  fields_.insert(fields_.begin(), {"conv_state", {c.conv1d_kernel_size, I}});
  const auto normal = [&](const std::string& name, const Shape& shape, double deviation) {
    return rng.stream(name).normal(shape, 0, deviation);
  };
  const auto projection = [&](const std::string& name, const Shape& shape, double deviation) {
    const Tensor weight = normal(name + ".weight", shape, deviation);
    Projection made;
    made.weight = shape.rank() == 2 ? &add_matrix(name + ".weight", weight) : &add_parameter(name + ".weight", weight);
    const std::int64_t out = shape.rank() == 2 ? shape[0] : I;
    if (c.bias) made.bias = &add_parameter(name + ".bias", Tensor::zeros({out}), false);
    return made;
  };
  const double small = small_deviation(E), bound = 1 / std::sqrt(static_cast<double>(c.conv1d_kernel_size));
  up_ = projection("proj_up", {2 * I, E}, small);
  const auto uniform = [&](const char* name, const Shape& shape) {
    return rng.stream(name).uniform(shape, -bound, bound);
  };
  conv_ = &add_parameter("conv1d.conv.weight", uniform("conv1d.conv.weight", {I, 1, c.conv1d_kernel_size}));
  conv_bias_ = &add_parameter("conv1d.conv.bias", uniform("conv1d.conv.bias", {I}), false);
  q_ = projection("q_proj", {I / p, p, p}, small);
  k_ = projection("k_proj", {I / p, p, p}, small);
  v_ = projection("v_proj", {I / p, p, p}, small);
  const auto gate = [&](const std::string& name, const Tensor& bias) {
    const Tensor weight =
        c.init == GateInit::Active ? normal(name + ".weight", {H, 3 * I}, small) : Tensor::zeros({H, 3 * I});
    return Projection{&add_matrix(name + ".weight", weight), &add_parameter(name + ".bias", bias, false)};
  };
  igate_ = gate("mlstm_cell.igate", normal("mlstm_cell.igate.bias", {H}, 0.1));
  fgate_ = gate("mlstm_cell.fgate", evenly_spaced(3, 6, H));
  norm_ = &add_parameter("mlstm_cell.outnorm.weight", Tensor::zeros({I}), false);
  skip_ = &add_parameter("learnable_skip", Tensor::full({I}, 1.0), false);
  down_ = projection("proj_down", {E, I}, wang_deviation(E, c.num_blocks));
}

Variable Mlstm::blocks(Context& ctx, const Variable& x, const Projection& projection) const {
  return headwise_linear(ctx, x, projection.weight->value, projection.bias ? projection.bias->value : Variable());
}

LayerOutput Mlstm::forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const {
  const MlstmConfig& c = config_;
  const std::int64_t L = x.size(0), I = c.inner_dim, H = c.num_heads, D = I / H;
  if (state.empty() && c.m0 != FirstStabiliser::Zero) state = initial_state(ctx, segments.count());
  auto [u, z] = split2(ctx, apply(ctx, x, *up_.weight, up_.bias), I);
  auto [a, conv_state] = short_conv(ctx, u, conv_->value, conv_bias_->value, state.take(0), segments);
  const std::array<Variable, 3> qkv = {blocks(ctx, a, q_), blocks(ctx, a, k_), blocks(ctx, u, v_)};  // v: not convolved
  const Variable joined = concat(ctx, qkv);
  MlstmArguments cell;
  cell.q = reshape(ctx, qkv[0], {L, H, D});
  cell.k = reshape(ctx, qkv[1], {L, H, D});
  cell.v = reshape(ctx, qkv[2], {L, H, D});
  cell.i = apply(ctx, joined, *igate_.weight, igate_.bias);
  cell.f = apply(ctx, joined, *fgate_.weight, fgate_.bias);
  cell.scale = 1 / std::sqrt(static_cast<double>(D));
  cell.eps = c.eps;
  cell.form = form_;
  cell.chunk = chunk_;
  auto [h, last] = mlstm(ctx, cell, {state.take(1), state.take(2), state.take(3)}, segments);
  const Variable normed = layer_norm(ctx, reshape(ctx, h, {L, I}), norm_->value, {}, c.norm_eps, D, true);
  const Variable skipped = add(ctx, normed, mul(ctx, a, skip_->value));

  LayerOutput out;
  out.y = apply(ctx, mul(ctx, skipped, silu(ctx, z)), *down_.weight, down_.bias);
  out.state.push(std::move(conv_state));
  push_state(out.state, std::move(last));
  return out;
}

void Mlstm::use_form(ops::Form form, std::int64_t chunk) {
  form_ = form;
  chunk_ = chunk;
}

State Mlstm::initial_state(Context& ctx, std::int64_t sequences) const {
  State state = Layer::initial_state(ctx, sequences);
  if (config_.m0 == FirstStabiliser::MinusInfinity) state[3].value().fill(-std::numeric_limits<double>::infinity());
  return state;
}

std::vector<Variable> Mlstm::export_state(Context& ctx, const State& state) const {
  std::vector<Variable> fields = Layer::export_state(ctx, state);
  const std::int64_t D = config_.inner_dim / config_.num_heads;
  fields[1] = unpack_state(ctx, fields[1], D);
  if (config_.state_scale == StateScale::Query) return fields;
  const double scaled = 1 / std::sqrt(static_cast<double>(D));
  for (const std::size_t i : {1, 2}) fields[i] = scale(ctx, fields[i], scaled);
  return fields;
}

State Mlstm::import_state(Context& ctx, std::vector<Variable> fields) const {
  check_exchange_fields(fields, fields_.size(), type());
  if (config_.state_scale == StateScale::Key) {
    const double scaled = std::sqrt(static_cast<double>(config_.inner_dim / config_.num_heads));
    for (const std::size_t i : {1, 2}) fields[i] = scale(ctx, fields[i], scaled);
  }
  fields[1] = pack_state(ctx, fields[1]);
  return Layer::import_state(ctx, std::move(fields));
}

}  // namespace stepwell::layers
