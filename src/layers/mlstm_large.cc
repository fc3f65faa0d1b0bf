// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/mlstm_large.h"

#include <algorithm>
#include <utility>

#include "layers/mlstm_state.h"
#include "layers/xlstm_init.h"

namespace stepwell::layers {

namespace {

constexpr std::string_view kInits[] = {"reference", "active"};
constexpr std::string_view kModes[] = {"single", "fused"};

std::int64_t share_of(std::int64_t width, double factor) {
  return static_cast<std::int64_t>(static_cast<double>(width) * factor);
}

}  // namespace

std::int64_t MlstmLargeConfig::query_width() const { return share_of(embedding_dim, qk_dim_factor); }
std::int64_t MlstmLargeConfig::value_width() const { return share_of(embedding_dim, v_dim_factor); }

MlstmLargeConfig MlstmLargeConfig::read(std::int64_t width, const Config& options) {
  ConfigReader reader(options, "mlstm_large");
  MlstmLargeConfig c;
  c.embedding_dim = reader.integer("embedding_dim", width, width, width);
  c.num_heads = reader.integer("num_heads", c.num_heads, 1, 1 << 12);
  c.qk_dim_factor = reader.number("qk_dim_factor", c.qk_dim_factor, 1e-6, 1 << 10);
  c.v_dim_factor = reader.number("v_dim_factor", c.v_dim_factor, 1e-6, 1 << 10);
  const auto divides = [&](std::int64_t all) { return all >= c.num_heads && all % c.num_heads == 0; };
  if (!divides(c.query_width()) || !divides(c.value_width())) {
    reader.reject("num_heads", "a divisor of the widths of queries and values, " + std::to_string(c.query_width()) +
                                   " and " + std::to_string(c.value_width()));
  }
  c.gate_soft_cap = reader.number("gate_soft_cap", c.gate_soft_cap, 1e-6, 1e6);
  c.norm_eps = reader.number("norm_eps", c.norm_eps, 0, 1);
  c.eps = reader.number("eps", c.eps, 0, 1);
  c.use_bias = reader.boolean("use_bias", c.use_bias);
  c.fused = reader.choice("weight_mode", "single", kModes) == 1;
  c.num_blocks = reader.integer("num_blocks", c.num_blocks, 1, 1 << 12);
  c.init = static_cast<GateInit>(reader.choice("init", "reference", kInits));
  reader.finish();
  return c;
}

Config MlstmLargeConfig::options() const {
  Config c;
  c.set("num_heads", num_heads);
  c.set("qk_dim_factor", qk_dim_factor);
  c.set("v_dim_factor", v_dim_factor);
  c.set("gate_soft_cap", gate_soft_cap);
  c.set("norm_eps", norm_eps);
  c.set("eps", eps);
  c.set("use_bias", use_bias);
  c.set("weight_mode", std::string(kModes[fused ? 1 : 0]));
  c.set("num_blocks", num_blocks);
  c.set("init", std::string(kInits[static_cast<std::size_t>(init)]));
  return c;
}

MlstmLarge::MlstmLarge(const MlstmLargeConfig& config, const Rng& rng)
    : config_(MlstmLargeConfig::read(config.embedding_dim, config.options())) {
  const MlstmLargeConfig& c = config_;
  const std::int64_t E = c.embedding_dim, Q = c.query_width(), V = c.value_width(), H = c.num_heads;
  fields_ = mlstm_state_fields(H, Q / H, V / H);
  const auto projection = [&](const std::string& name, std::int64_t out, std::int64_t in, double deviation) {
    Projection made;
    made.weight = &add_matrix(name + ".weight", rng.stream(name + ".weight").normal({out, in}, 0, deviation));
    if (c.use_bias) made.bias = &add_parameter(name + ".bias", Tensor::zeros({out}), false);
    return made;
  };
  const double small = small_deviation(E);
  const auto gate = [&](const std::string& name, const Tensor& bias) {
    const Shape shape{bias.size(0), E};
    const bool active = c.init == GateInit::Active;
    const Tensor weight = active ? rng.stream(name + ".weight").normal(shape, 0, small) : Tensor::zeros(shape);
    return Projection{&add_matrix(name + ".weight", weight), &add_parameter(name + ".bias", bias, false)};
  };
  const Tensor bias = Tensor::full({2 * H}, c.init == GateInit::Active ? 0.0 : -10.0), input_bias = bias.slice(0, 0, H),
               forget_bias = bias.slice(0, H, H);
  forget_bias.copy_from(evenly_spaced(3, 6, H));
  if (c.fused) {
    qkvo_ = projection("qkv_opreact", 2 * Q + 2 * V, E, small);
    ifgate_ = gate("ifgate_preact", bias);
  } else {
    q_ = projection("q", Q, E, small);
    k_ = projection("k", Q, E, small);
    v_ = projection("v", V, E, small);
    ogate_ = projection("ogate_preact", V, E, small);
    igate_ = gate("igate_preact", input_bias.clone());
    fgate_ = gate("fgate_preact", forget_bias.clone());
  }
  norm_.weight = &add_parameter("multihead_norm.weight", Tensor::full({V}, 1.0), false);
  if (c.use_bias) norm_.bias = &add_parameter("multihead_norm.bias", Tensor::zeros({V}), false);
  out_ = projection("out_proj", E, V, wang_deviation(E, c.num_blocks));
}

Variable MlstmLarge::project(Context& ctx, const Variable& x, const Projection& projection) const {
  return apply(ctx, x, *projection.weight, projection.bias);
}

std::pair<MlstmArguments, Variable> MlstmLarge::project(Context& ctx, const Variable& x) const {
  const MlstmLargeConfig& c = config_;
  const std::int64_t Q = c.query_width(), V = c.value_width(), H = c.num_heads;
  Variable q, k, v, o, i, f;
  if (c.fused) {
    auto [keys, values] = split2(ctx, project(ctx, x, qkvo_), 2 * Q);
    std::tie(q, k) = split2(ctx, keys, Q);
    std::tie(v, o) = split2(ctx, values, V);
    std::tie(i, f) = split2(ctx, project(ctx, x, ifgate_), H);
  } else {
    q = project(ctx, x, q_);
    k = project(ctx, x, k_);
    v = project(ctx, x, v_);
    o = project(ctx, x, ogate_);
    i = project(ctx, x, igate_);
    f = project(ctx, x, fgate_);
  }
  const auto heads = [&](const Variable& part, std::int64_t width) {
    return reshape(ctx, part, {x.size(0), H, width / H});
  };
  MlstmArguments cell;
  cell.q = heads(q, Q);
  cell.k = heads(k, Q);
  cell.v = heads(v, V);
  cell.i = soft_cap(ctx, i, c.gate_soft_cap);
  cell.f = soft_cap(ctx, f, c.gate_soft_cap);
  cell.scale = 1 / std::sqrt(static_cast<double>(Q / H));
  cell.eps = c.eps;
  return {std::move(cell), std::move(o)};
}

LayerOutput MlstmLarge::forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const {
  const std::int64_t V = config_.value_width();
  const auto [cell, o] = project(ctx, x);
  auto [h, last] = mlstm(ctx, cell, {state.take(0), state.take(1), state.take(2)}, segments);
  const Variable normed =
      layer_norm(ctx, reshape(ctx, h, {x.size(0), V}), norm_.weight->value, norm_.bias ? norm_.bias->value : Variable(),
                 config_.norm_eps, V / config_.num_heads);
  LayerOutput out;
  out.y = project(ctx, mul(ctx, normed, sigmoid(ctx, o)), out_);
  push_state(out.state, std::move(last));
  return out;
}

std::vector<Variable> MlstmLarge::export_state(Context& ctx, const State& state) const {
  std::vector<Variable> fields = Layer::export_state(ctx, state);
  fields[0] = unpack_state(ctx, fields[0], config_.value_width() / config_.num_heads);
  return fields;
}

State MlstmLarge::import_state(Context& ctx, std::vector<Variable> fields) const {
  check_exchange_fields(fields, fields_.size(), type());
  fields[0] = pack_state(ctx, fields[0]);
  return Layer::import_state(ctx, std::move(fields));
}

}  // namespace stepwell::layers
