// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/mamba.h"

#include <utility>

#include "layers/mamba_init.h"
#include "layers/option_names.h"

namespace stepwell::layers {

namespace {

constexpr std::string_view kInits[] = {"reference", "stable", "active"};
constexpr std::string_view kStepInits[] = {"random", "constant"};
constexpr std::string_view kDiscretisations[] = {"euler", "zero_order"};

}  // namespace

MambaConfig MambaConfig::read(std::int64_t width, const Config& options) {
  ConfigReader reader(options, "mamba");
  MambaConfig c;
  c.d_model = reader.integer("d_model", width, width, width);
  c.d_state = reader.integer("d_state", c.d_state, 1, 1 << 12);
  c.d_conv = reader.integer("d_conv", c.d_conv, 1, 1 << 12);
  c.expand = reader.integer("expand", c.expand, 1, 1 << 10);
  c.d_inner = reader.integer("d_inner", c.expand * width, 1, kMaxWidth);
  const Config* rank = options.find("dt_rank");
  if (rank && rank->is_string()) {
    if (reader.text("dt_rank", "auto") != "auto") reader.reject("dt_rank", "\"auto\" or an integer");
  } else {
    c.dt_rank = reader.integer("dt_rank", 0, 1, kMaxWidth);
  }
  if (c.dt_rank == 0) c.dt_rank = (width + 15) / 16;
  c.bias = reader.boolean("bias", c.bias);
  c.conv_bias = reader.boolean("conv_bias", c.conv_bias);
  c.falcon_rms = reader.boolean("falcon_rms", c.falcon_rms);
  c.mixer_rms_eps = reader.number("mixer_rms_eps", c.mixer_rms_eps, 0, 1);
  c.discretisation = static_cast<ops::Discretisation>(reader.choice("discretisation", "euler", kDiscretisations));
  c.init = static_cast<MambaInit>(reader.choice("init", "reference", kInits));
  c.dt_init = static_cast<MambaStepInit>(reader.choice("dt_init", "random", kStepInits));
  c.dt_min = reader.number("dt_min", c.dt_min, 1e-12, 20);
  c.dt_max = reader.number("dt_max", c.dt_max, c.dt_min, 20);
  c.dt_scale = reader.number("dt_scale", c.dt_scale, 0, 1e6);
  c.dt_init_floor = reader.number("dt_init_floor", c.dt_init_floor, 0, 20);
  reader.finish();
  return c;
}

Config MambaConfig::options() const {
  Config c;
  c.set("d_state", d_state);
  c.set("d_conv", d_conv);
  c.set("expand", expand);
  c.set("d_inner", d_inner);
  c.set("dt_rank", dt_rank);
  c.set("bias", bias);
  c.set("conv_bias", conv_bias);
  c.set("falcon_rms", falcon_rms);
  c.set("mixer_rms_eps", mixer_rms_eps);
  c.set("discretisation", name_in(kDiscretisations, discretisation));
  c.set("init", name_in(kInits, init));
  c.set("dt_init", name_in(kStepInits, dt_init));
  c.set("dt_min", dt_min);
  c.set("dt_max", dt_max);
  c.set("dt_scale", dt_scale);
  c.set("dt_init_floor", dt_init_floor);
  return c;
}

namespace {

// Fills in what 0 stands for and checks a configuration made by hand as read() checks one from a file.
MambaConfig resolved(const MambaConfig& config) {
  STEPWELL_CHECK(config.d_model >= 1 && config.d_model <= kMaxWidth, "mamba",
                 "d_model = " + std::to_string(config.d_model) + ", expected 1 to " + std::to_string(kMaxWidth));
  MambaConfig c = config;
  if (c.d_inner == 0) c.d_inner = c.expand * c.d_model;
  if (c.dt_rank == 0) c.dt_rank = (c.d_model + 15) / 16;
  return MambaConfig::read(c.d_model, c.options());
}

}  // namespace

Mamba::Mamba(const MambaConfig& config, const Rng& rng) : config_(resolved(config)) {
  const MambaConfig& c = config_;
  fields_ = {{"conv_state", {c.d_conv, c.d_inner}}, {"ssm_state", {c.d_state, c.d_inner}}};
  const MambaInitialiser init(c, rng);
  const auto zeros = [](std::int64_t n) { return Tensor::zeros({n}); };
  in_proj_ = &add_matrix("in_proj.weight", init.projection("in_proj.weight", {2 * c.d_inner, c.d_model}, c.d_model));
  if (c.bias) in_proj_bias_ = &add_parameter("in_proj.bias", zeros(2 * c.d_inner), false);
  conv_ = &add_parameter("conv1d.weight", init.projection("conv1d.weight", {c.d_inner, 1, c.d_conv}, c.d_conv));
  if (c.conv_bias) conv_bias_ = &add_parameter("conv1d.bias", init.conv_bias("conv1d.bias"), false);
  x_proj_ =
      &add_matrix("x_proj.weight", init.projection("x_proj.weight", {c.dt_rank + 2 * c.d_state, c.d_inner}, c.d_inner));
  dt_proj_ = &add_matrix("dt_proj.weight", init.step_weight("dt_proj.weight"));
  dt_bias_ = &add_parameter("dt_proj.bias", init.step_bias("dt_proj.bias"), false);
  A_log_ = &add_parameter("A_log", init.A_log(), false);
  D_ = &add_parameter("D", Tensor::full({c.d_inner}, 1.0), false);
  out_proj_ = &add_matrix("out_proj.weight", init.projection("out_proj.weight", {c.d_model, c.d_inner}, c.d_inner));
  if (c.bias) out_proj_bias_ = &add_parameter("out_proj.bias", zeros(c.d_model), false);
}

void Mamba::derive(Context& ctx) {
  NoGrad constant;
  A_log_->derived = decay_rate(ctx, A_log_->value).value();
}

LayerOutput Mamba::forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const {
  const MambaConfig& c = config_;
  auto [convolved, z] = split2(ctx, apply(ctx, x, *in_proj_, in_proj_bias_), c.d_inner);
  auto [u, conv_state] =
      short_conv(ctx, convolved, conv_->value, conv_bias_ ? conv_bias_->value : Variable(), state.take(0), segments);
  auto [r, BC] = split2(ctx, apply(ctx, u, *x_proj_, nullptr), c.dt_rank);
  auto [B, C] = split2(ctx, BC, c.d_state);
  if (c.falcon_rms) {
    r = rms_norm(ctx, r, {}, c.mixer_rms_eps);
    B = rms_norm(ctx, B, {}, c.mixer_rms_eps);
    C = rms_norm(ctx, C, {}, c.mixer_rms_eps);
  }
  SelectiveScanArguments scan;
  scan.u = std::move(u);
  scan.dt = apply(ctx, r, *dt_proj_, nullptr);
  scan.A = A_log_->derived.defined() && !grad_enabled() ? Variable(A_log_->derived) : decay_rate(ctx, A_log_->value);
  scan.B = std::move(B);
  scan.C = std::move(C);
  scan.z = std::move(z);
  scan.D = D_->value;
  scan.dt_bias = dt_bias_->value;
  scan.discretisation = c.discretisation;
  auto [o, ssm_state] = selective_scan(ctx, scan, state.take(1), segments);

  LayerOutput out;
  out.y = apply(ctx, o, *out_proj_, out_proj_bias_);
  out.state.push(std::move(conv_state));
  out.state.push(std::move(ssm_state));
  return out;
}

std::vector<Variable> Mamba::export_state(Context& ctx, const State& state) const {
  std::vector<Variable> fields = Layer::export_state(ctx, state);
  for (Variable& field : fields) field = transpose_last2(ctx, field);
  return fields;
}

State Mamba::import_state(Context& ctx, std::vector<Variable> fields) const {
  for (Variable& field : fields) field = transpose_last2(ctx, field);
  return Layer::import_state(ctx, std::move(fields));
}

}  // namespace stepwell::layers
