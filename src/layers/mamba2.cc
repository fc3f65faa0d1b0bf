// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/mamba2.h"

#include <array>
#include <utility>

#include "layers/initial_values.h"
#include "layers/option_names.h"
#include "layers/ssd.h"

namespace stepwell::layers {

namespace {

constexpr const char* kType = "mamba2";
constexpr std::string_view kDecayInits[] = {"uniform", "ordinal"};

// Which of an option's two names to read: Hugging Face's where it is given.
std::string_view spelled(ConfigReader& reader, std::string_view name, std::string_view hugging_face) {
  reader.ignore(name);
  return reader.has(hugging_face) ? hugging_face : name;
}

void read_widths(ConfigReader& reader, std::int64_t width, Mamba2Config& c) {
  c.d_model = reader.integer(spelled(reader, "d_model", "hidden_size"), width, width, width);
  c.d_state = reader.integer(spelled(reader, "d_state", "state_size"), c.d_state, 1, 1 << 12);
  c.d_conv = reader.integer(spelled(reader, "d_conv", "conv_kernel"), c.d_conv, 1, 1 << 12);
  c.expand = reader.integer("expand", c.expand, 1, 1 << 10);
  c.d_inner = reader.integer(spelled(reader, "d_inner", "intermediate_size"), c.expand * width, 1, kMaxWidth);
  c.d_ssm = reader.integer("d_ssm", c.d_inner, 1, c.d_inner);
  const std::string_view headdim = spelled(reader, "headdim", "head_dim");
  c.headdim = reader.integer(headdim, c.headdim, 1, kMaxWidth);
  if (c.d_ssm % c.headdim != 0) {
    reader.reject(headdim, "a divisor of the inner width " + std::to_string(c.d_ssm) + ", which " +
                               std::to_string(c.headdim) + " is not");
  }
  const std::int64_t heads = c.d_ssm / c.headdim;
  reader.integer(spelled(reader, "nheads", "num_heads"), heads, heads, heads);
  const std::string_view groups = spelled(reader, "ngroups", "n_groups");
  c.ngroups = reader.integer(groups, c.ngroups, 1, heads);
  if (heads % c.ngroups != 0) reader.reject(groups, "a divisor of the number of heads, " + std::to_string(heads));
}

void read_norm(ConfigReader& reader, Mamba2Config& c) {
  c.rmsnorm = reader.boolean(spelled(reader, "rmsnorm", "rms_norm"), c.rmsnorm);
  c.norm_before_gate = reader.boolean("norm_before_gate", c.norm_before_gate);
  c.norm_group_size = reader.integer("norm_group_size", c.d_ssm / c.ngroups, 1, c.d_ssm);
  if (c.d_ssm % c.norm_group_size != 0) {
    reader.reject("norm_group_size", "a divisor of the inner width " + std::to_string(c.d_ssm));
  }
  c.norm_eps = reader.number(spelled(reader, "norm_eps", "layer_norm_epsilon"), c.norm_eps, 0, 1);
}

void read_first_values(ConfigReader& reader, Mamba2Config& c) {
  c.A_init = static_cast<DecayInit>(reader.choice("A_init", "uniform", kDecayInits));
  if (const Config range = reader.list("A_init_range"); !range.is_null()) {
    const Config::Array& pair = range.as_array("A_init_range");
    if (pair.size() != 2 || !pair[0].is_number() || !pair[1].is_number()) {
      reader.reject("A_init_range", "two numbers");
    }
    c.A_low = pair[0].as_double("A_init_range");
    c.A_high = pair[1].as_double("A_init_range");
    if (!(0 <= c.A_low && c.A_low <= c.A_high && 0 < c.A_high && c.A_high <= 1e6)) {
      reader.reject("A_init_range", "two numbers from 0 to 1000000, the second not below the first");
    }
  }
  c.dt_min = reader.number(spelled(reader, "dt_min", "time_step_min"), c.dt_min, 1e-12, 20);
  c.dt_max = reader.number(spelled(reader, "dt_max", "time_step_max"), c.dt_max, c.dt_min, 20);
  c.dt_init_floor = reader.number(spelled(reader, "dt_init_floor", "time_step_floor"), c.dt_init_floor, 0, 20);
}

// A configuration made by hand, checked as read() checks one from a file.
Mamba2Config checked(const Mamba2Config& config) {
  STEPWELL_CHECK(config.d_model >= 1 && config.d_model <= kMaxWidth, kType,
                 "d_model = " + std::to_string(config.d_model) + ", expected 1 to " + std::to_string(kMaxWidth));
  return Mamba2Config::read(config.d_model, config.options());
}

std::int64_t heads_of(const Mamba2Config& c) { return c.d_ssm / c.headdim; }
std::int64_t conv_channels_of(const Mamba2Config& c) { return c.d_ssm + 2 * c.ngroups * c.d_state; }

}  // namespace

Mamba2Config Mamba2Config::read(std::int64_t width, const Config& options) {
  ConfigReader reader(options, kType);
  Mamba2Config c;
  read_widths(reader, width, c);
  read_norm(reader, c);
  read_first_values(reader, c);
  c.D_has_hdim = reader.boolean("D_has_hdim", c.D_has_hdim);
  c.dt_limit = read_step_limits(reader, spelled(reader, "dt_limit", "time_step_limit"));
  c.bias = reader.boolean(spelled(reader, "bias", "use_bias"), c.bias);
  c.conv_bias = reader.boolean(spelled(reader, "conv_bias", "use_conv_bias"), c.conv_bias);
  c.learnable_init_states = reader.boolean("learnable_init_states", c.learnable_init_states);
  reader.ignore("chunk_size");
  reader.finish();
  return c;
}

Config Mamba2Config::options() const {
  Config c;
  const std::int64_t inner = d_inner ? d_inner : expand * d_model, ssm = d_ssm ? d_ssm : inner;
  c.set("d_state", d_state);
  c.set("d_conv", d_conv);
  c.set("expand", expand);
  c.set("d_inner", inner);
  c.set("d_ssm", ssm);
  c.set("headdim", headdim);
  c.set("ngroups", ngroups);
  c.set("D_has_hdim", D_has_hdim);
  c.set("rmsnorm", rmsnorm);
  c.set("norm_before_gate", norm_before_gate);
  if (norm_group_size) c.set("norm_group_size", norm_group_size);
  c.set("norm_eps", norm_eps);
  c.set("dt_limit", step_limits_option(dt_limit));
  c.set("bias", bias);
  c.set("conv_bias", conv_bias);
  c.set("learnable_init_states", learnable_init_states);
  c.set("A_init", name_in(kDecayInits, A_init));
  c.set("A_init_range", Config::Array{A_low, A_high});
  c.set("dt_min", dt_min);
  c.set("dt_max", dt_max);
  c.set("dt_init_floor", dt_init_floor);
  return c;
}

Mamba2::Mamba2(const Mamba2Config& config, const Rng& rng) : config_(checked(config)) {
  const Mamba2Config& c = config_;
  const std::int64_t H = heads_of(c), channels = conv_channels_of(c);
  fields_ = {{"conv_state", {c.d_conv, channels}},
             {"ssm_state", {H, ops::state_units(c.headdim), c.d_state, ops::kStateUnit}}};
  const auto first = [&](const char* name, const Shape& shape, std::int64_t fan_in) {
    return uniform_fan_in(rng.stream(name), shape, fan_in);
  };
  const std::int64_t projected = c.d_inner * 2 + 2 * c.ngroups * c.d_state + H;
  in_proj_ = &add_matrix("in_proj.weight", first("in_proj.weight", {projected, c.d_model}, c.d_model));
  if (c.bias) in_proj_bias_ = &add_parameter("in_proj.bias", first("in_proj.bias", {projected}, c.d_model), false);
  conv_ = &add_parameter("conv1d.weight", first("conv1d.weight", {channels, 1, c.d_conv}, c.d_conv));
  if (c.conv_bias) conv_bias_ = &add_parameter("conv1d.bias", first("conv1d.bias", {channels}, c.d_conv), false);
  dt_bias_ =
      &add_parameter("dt_bias", step_biases(rng.stream("dt_bias"), {H}, c.dt_min, c.dt_max, c.dt_init_floor), false);
  const bool ordinal = c.A_init == DecayInit::Ordinal;
  A_log_ = &add_parameter(
      "A_log", ordinal ? log_of_range(H) : log_of_uniform(rng.stream("A_log"), {H}, c.A_low, c.A_high), false);
  D_ = &add_parameter("D", Tensor::full({c.D_has_hdim ? c.d_ssm : H}, 1.0), false);
  if (c.rmsnorm) norm_ = &add_parameter("norm.weight", Tensor::full({c.d_ssm}, 1.0), false);
  out_proj_ = &add_matrix("out_proj.weight", first("out_proj.weight", {c.d_model, c.d_inner}, c.d_inner));
  if (c.bias) out_proj_bias_ = &add_parameter("out_proj.bias", first("out_proj.bias", {c.d_model}, c.d_inner), false);
  if (c.learnable_init_states) {
    init_states_ = &add_parameter("init_states", Tensor::zeros({H, c.headdim, c.d_state}), false);
  }
}

void Mamba2::derive(Context& ctx) {
  NoGrad constant;
  A_log_->derived = decay_rate(ctx, A_log_->value).value();
}

// -------------------------------------------------------------------------------------------------------- Forward

// out_norm(y, z) of [L, d_ssm] rows, in the order the configuration has.
Variable Mamba2::gated(Context& ctx, const Variable& y, const Variable& z) const {
  const Mamba2Config& c = config_;
  if (!c.rmsnorm) return mul(ctx, y, silu(ctx, z));
  return gated_rms_norm(ctx, y, z, norm_->value, c.norm_eps, c.norm_before_gate ? GateOrder::After : GateOrder::Before,
                        c.norm_group_size);
}

LayerOutput Mamba2::forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const {
  const Mamba2Config& c = config_;
  const std::int64_t L = x.size(0), H = heads_of(c), plain = c.d_inner - c.d_ssm, groups = c.ngroups * c.d_state;
  // Rows of in_proj: z0, x0 [plain], z [d_ssm], what is convolved [d_ssm + 2 groups], dt [H].
  const Variable projected = apply(ctx, x, *in_proj_, in_proj_bias_);
  auto [unit, recurrent] = split2(ctx, projected, 2 * plain);
  auto [z, rest] = split2(ctx, recurrent, c.d_ssm);
  auto [convolved, dt] = split2(ctx, rest, conv_channels_of(c));
  auto [xBC, conv_state] =
      short_conv(ctx, convolved, conv_->value, conv_bias_ ? conv_bias_->value : Variable(), state.take(0), segments);
  auto [u, BC] = split2(ctx, xBC, c.d_ssm);
  auto [B, C] = split2(ctx, BC, groups);

  SsdArguments in;
  in.x = reshape(ctx, u, {L, H, c.headdim});
  in.dt = dt;
  in.A = A_log_->derived.defined() && !grad_enabled() ? Variable(A_log_->derived) : decay_rate(ctx, A_log_->value);
  in.B = reshape(ctx, B, {L, c.ngroups, c.d_state});
  in.C = reshape(ctx, C, {L, c.ngroups, c.d_state});
  in.D = c.D_has_hdim ? reshape(ctx, D_->value, {H, c.headdim}) : D_->value;
  in.dt_bias = dt_bias_->value;
  in.dt_limit = c.dt_limit;
  Variable before = state.take(1);
  if (!before && init_states_) before = learned_state(ctx, segments.count());
  auto [y, ssm_state] = ssd(ctx, in, std::move(before), segments);

  Variable mixed = gated(ctx, reshape(ctx, y, {L, c.d_ssm}), z);
  if (plain > 0) {
    auto [z0, x0] = split2(ctx, unit, plain);
    const std::array<Variable, 2> parts = {mul(ctx, silu(ctx, z0), x0), mixed};
    mixed = concat(ctx, parts);
  }
  LayerOutput out;
  out.y = apply(ctx, mixed, *out_proj_, out_proj_bias_);
  out.state.push(std::move(conv_state));
  out.state.push(std::move(ssm_state));
  return out;
}

// ---------------------------------------------------------------------------------------------------------- State

// init_states for every sequence, packed.
Variable Mamba2::learned_state(Context& ctx, std::int64_t sequences) const {
  const Mamba2Config& c = config_;
  const Variable one = reshape(ctx, transpose_last2(ctx, init_states_->value), {1, heads_of(c), c.d_state, c.headdim});
  const Tensor same = Tensor::zeros(ctx, {sequences}, DType::I64);
  return gather_rows(ctx, pack_state(ctx, one), same);
}

State Mamba2::initial_state(Context& ctx, std::int64_t sequences) const {
  State state = zero_state(sequences);
  if (init_states_) state[1] = learned_state(ctx, sequences);
  return state;
}

std::vector<Variable> Mamba2::export_state(Context& ctx, const State& state) const {
  std::vector<Variable> fields = Layer::export_state(ctx, state);
  fields[0] = transpose_last2(ctx, fields[0]);
  fields[1] = transpose_last2(ctx, unpack_state(ctx, fields[1], config_.headdim));
  return fields;
}

State Mamba2::import_state(Context& ctx, std::vector<Variable> fields) const {
  const Mamba2Config& c = config_;
  STEPWELL_CHECK(fields.size() == 2, type(),
                 "a state of " + std::to_string(fields.size()) + " fields, expected conv_state and ssm_state");
  const Variable& ssm = fields[1];
  STEPWELL_CHECK(ssm && ssm.shape().rank() == 4 && ssm.size(2) == c.headdim, type(),
                 "ssm_state is " + ssm.shape().to_string() + ", expected [sequences, " + std::to_string(heads_of(c)) +
                     ", " + std::to_string(c.headdim) + ", " + std::to_string(c.d_state) + "]");
  fields[0] = transpose_last2(ctx, fields[0]);
  fields[1] = pack_state(ctx, transpose_last2(ctx, fields[1]));
  return Layer::import_state(ctx, std::move(fields));
}

}  // namespace stepwell::layers
