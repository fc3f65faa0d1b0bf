// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/slstm.h"

#include <array>
#include <utility>

#include "stepwell/ops/elementwise.h"

#include "layers/xlstm_init.h"

namespace stepwell::layers {

namespace {

constexpr std::string_view kLayouts[] = {"vanilla", "cuda"};
constexpr std::string_view kBiasInits[] = {"powerlaw_blockdependent", "small_init", "standard", "zeros"};
constexpr std::string_view kRecurrentInits[] = {"zeros", "standard"};

template <class E>
std::string name_in(std::span<const std::string_view> names, E value) {
  return std::string(names[static_cast<std::size_t>(value)]);
}

}  // namespace

SlstmConfig SlstmConfig::read(std::int64_t width, const Config& options) {
  ConfigReader reader(options, "slstm");
  SlstmConfig c;
  c.embedding_dim = reader.integer("embedding_dim", width, width, width);
  c.num_heads = reader.integer("num_heads", c.num_heads, 1, 1 << 12);
  if (width % c.num_heads != 0) reader.reject("num_heads", "a divisor of the width " + std::to_string(width));
  c.conv1d_kernel_size = reader.integer("conv1d_kernel_size", c.conv1d_kernel_size, 0, 1 << 12);
  c.backend = static_cast<SlstmLayout>(reader.choice("backend", "vanilla", kLayouts));
  c.norm_eps = reader.number("norm_eps", c.norm_eps, 0, 1);
  c.bias_init = static_cast<SlstmBiasInit>(reader.choice("bias_init", kBiasInits[0], kBiasInits));
  c.recurrent_weight_init =
      static_cast<SlstmRecurrentInit>(reader.choice("recurrent_weight_init", "zeros", kRecurrentInits));
  c.num_blocks = reader.integer("num_blocks", c.num_blocks, 1, 1 << 12);
  c.block_idx = reader.integer("block_idx", c.block_idx, 0, c.num_blocks - 1);
  reader.ignore("context_length");
  reader.finish();
  return c;
}

Config SlstmConfig::options() const {
  Config c;
  c.set("num_heads", num_heads);
  c.set("conv1d_kernel_size", conv1d_kernel_size);
  c.set("backend", name_in(kLayouts, backend));
  c.set("norm_eps", norm_eps);
  c.set("bias_init", name_in(kBiasInits, bias_init));
  c.set("recurrent_weight_init", name_in(kRecurrentInits, recurrent_weight_init));
  c.set("num_blocks", num_blocks);
  c.set("block_idx", block_idx);
  return c;
}

Slstm::Slstm(const SlstmConfig& config, const Rng& rng)
    : config_(SlstmConfig::read(config.embedding_dim, config.options())) {
  const SlstmConfig& c = config_;
  const std::int64_t E = c.embedding_dim, H = c.num_heads, D = E / H, K = c.conv1d_kernel_size;
  fields_ = {{"state", {4, E}, true}};
  const auto uniform = [&](const std::string& name, const Shape& shape, std::int64_t fan_in) {
    const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
    return rng.stream(name).uniform(shape, -bound, bound);
  };
  if (K > 0) {
    fields_.push_back({"conv_state", {K, E}});
    conv_ = &add_parameter("conv1d.conv.weight", uniform("conv1d.conv.weight", {E, 1, K}, K));
    conv_bias_ = &add_parameter("conv1d.conv.bias", uniform("conv1d.conv.bias", {E}, K), false);
  }
  const auto gate = [&](const std::string& name) {
    return &add_parameter(name, rng.stream(name).normal({H, D, D}, 0, small_deviation(E)));
  };
  igate_ = gate("igate.weight");
  fgate_ = gate("fgate.weight");
  zgate_ = gate("zgate.weight");
  ogate_ = gate("ogate.weight");
  const std::string kernel = "slstm_cell._recurrent_kernel_";
  const Shape shape = c.backend == SlstmLayout::Cuda ? Shape{H, D, 4 * D} : Shape{H, 4 * D, D};
  const bool zeros = c.recurrent_weight_init == SlstmRecurrentInit::Zeros;
  kernel_ = &add_parameter(kernel, zeros ? Tensor::zeros(shape) : uniform(kernel, shape, E), false);
  bias_ = &add_parameter("slstm_cell._bias_", first_bias(rng.stream("slstm_cell._bias_")), false);
  norm_ = &add_parameter("group_norm.weight", Tensor::zeros({E}), false);
  bias_order_ = Tensor::empty({4 * H}, DType::I64);
  for (std::int64_t i = 0; i < 4 * H; ++i) bias_order_.data<std::int64_t>()[i] = i % H * 4 + i / H;
}

// Bit for bit the same everywhere: powers by the library's own functions.
Tensor Slstm::first_bias(const Rng& rng) const {
  const SlstmConfig& c = config_;
  const std::int64_t E = c.embedding_dim, H = c.num_heads, D = E / H;
  if (c.bias_init == SlstmBiasInit::Standard) {
    const double bound = 1 / std::sqrt(static_cast<double>(E));
    return rng.uniform(Shape{4 * E}, -bound, bound);
  }
  const Tensor bias = Tensor::zeros({4 * E});
  if (c.bias_init == SlstmBiasInit::Zeros) return bias;
  Tensor forget = evenly_spaced(3, 6, D);
  if (c.bias_init == SlstmBiasInit::PowerlawBlockdependent) {
    const double depth =
        c.num_blocks > 1 ? static_cast<double>(c.block_idx) / static_cast<double>(c.num_blocks - 1) : 0;
    Context ctx = Context::serial();
    const Tensor power = Tensor::empty({D}, DType::F64);
    for (std::int64_t d = 0; d < D; ++d) {
      power.data<double>()[d] = D > 1 ? static_cast<double>(d) / static_cast<double>(D - 1) : 0;
    }
    ops::unary(ctx, ops::Unary::Log, power, power);
    ops::scale(ctx, power, 0.3 + 1.3 * depth, power);
    ops::unary(ctx, ops::Unary::Exp, power, power);
    for (double& x : power.span<double>()) x = 5 - 12 * x;
    forget = power.to(DType::F32);
  }
  for (std::int64_t h = 0; h < H; ++h) {
    const std::int64_t at = c.backend == SlstmLayout::Cuda ? (4 * h + 1) * D : E + h * D;
    bias.slice(0, at, D).copy_from(forget);
  }
  return bias;
}

LayerOutput Slstm::forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const {
  const SlstmConfig& c = config_;
  const std::int64_t L = x.size(0), E = c.embedding_dim, H = c.num_heads, D = E / H;
  Variable cells = state.take(0), convolved = x, conv_state;
  if (conv_) {
    std::tie(convolved, conv_state) = short_conv(ctx, x, conv_->value, conv_bias_->value, state.take(1), segments);
  }
  const std::array<Variable, 4> gates = {
      headwise_linear(ctx, convolved, fgate_->value), headwise_linear(ctx, convolved, igate_->value),
      headwise_linear(ctx, x, zgate_->value), headwise_linear(ctx, x, ogate_->value)};
  Variable kernel = kernel_->value, bias = bias_->value;
  if (c.backend == SlstmLayout::Cuda) {
    kernel = transpose_last2(ctx, kernel);
    bias = reshape(ctx, gather_rows(ctx, reshape(ctx, bias, {4 * H, D}), bias_order_), {4 * E});
  }
  auto [y, last] = slstm(ctx, concat(ctx, gates), kernel, bias, std::move(cells), segments);
  LayerOutput out;
  out.y = layer_norm(ctx, reshape(ctx, y, {L, E}), norm_->value, {}, c.norm_eps, D, true);
  out.state.push(std::move(last));
  if (conv_) out.state.push(std::move(conv_state));
  return out;
}

namespace {

// [a, b, n] → [b, a, n].
Variable exchange_first2(Context& ctx, const Variable& x) {
  const std::int64_t a = x.size(0), b = x.size(1), n = x.size(2);
  const Tensor order = Tensor::empty({a * b}, DType::I64);
  for (std::int64_t i = 0; i < a * b; ++i) order.data<std::int64_t>()[i] = i % a * b + i / a;
  return reshape(ctx, gather_rows(ctx, reshape(ctx, x, {a * b, n}), order), {b, a, n});
}

}  // namespace

std::vector<Variable> Slstm::export_state(Context& ctx, const State& state) const {
  std::vector<Variable> fields = Layer::export_state(ctx, state);
  fields[0] = exchange_first2(ctx, fields[0]);
  return fields;
}

State Slstm::import_state(Context& ctx, std::vector<Variable> fields) const {
  STEPWELL_CHECK(!fields.empty() && fields[0].defined() && fields[0].shape().rank() == 3, type(),
                 "a state of " + std::to_string(fields.size()) + " fields, expected state [4, S, E] first");
  fields[0] = exchange_first2(ctx, fields[0]);
  return Layer::import_state(ctx, std::move(fields));
}

}  // namespace stepwell::layers
