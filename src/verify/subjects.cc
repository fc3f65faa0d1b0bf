// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "stepwell/io/json.h"
#include "stepwell/layers/registry.h"
#include "stepwell/verify/verify.h"

#include "ops/linear_attention/reference.h"
#include "ops/matmul/reference.h"
#include "ops/selective_scan/reference.h"
#include "ops/short_conv/reference.h"

namespace stepwell::verify {

namespace {

using layers::LayerOutput;
using layers::State;

Tensor random(std::string_view name, const Shape& shape, double mean = 0, double deviation = 1) {
  return Rng(17).stream("verify subject").stream(name).normal(shape, mean, deviation);
}

// An op dressed as a layer: its inputs per token are the columns of x, the others are parameters.
class OpLayer : public layers::Layer {
 public:
  OpLayer(std::string_view type, std::int64_t width, std::vector<layers::StateField> fields)
      : type_(type), width_(width), fields_(std::move(fields)) {}
  std::string_view type() const override { return type_; }
  Config config() const override { return {}; }
  std::int64_t width() const override { return width_; }
  const std::vector<layers::StateField>& state_fields() const override { return fields_; }
  // The op's reference on x [L, width], in double; the state comes back in the memory of `state`.
  virtual LayerOutput reference(const Tensor& x, const State& state, const Segments& segments) const = 0;

 private:
  std::string_view type_;
  std::int64_t width_;
  std::vector<layers::StateField> fields_;
};

LayerOutput with_state(Variable y, Variable last) {
  LayerOutput out{std::move(y), {}};
  out.state.push(std::move(last));
  return out;
}

// ops/matmul: y = x Wᵀ + b. No state.
class MatmulOp final : public OpLayer {
 public:
  MatmulOp(std::int64_t in, std::int64_t out)
      : OpLayer("matmul", in, {}),
        weight_(add_parameter("weight", random("weight", {out, in}))),
        bias_(add_parameter("bias", random("bias", {out}))) {}

  LayerOutput reference(const Tensor& x, const State&, const Segments&) const override {
    const Tensor y = Tensor::empty({x.size(0), weight_.value.size(0)}, DType::F64);
    ops::reference::matmul(ops::Product::ABt, x.view<const double, 2>(), weight_.value.value().view<const double, 2>(),
                           y.view<double, 2>(), {.bias = bias_.value.value().data<double>()});
    return {y, {}};
  }

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State, const Segments&) const override {
    return {linear(ctx, x, weight_.value, bias_.value), {}};
  }

 private:
  layers::Parameter &weight_, &bias_;
};

class ShortConvOp final : public OpLayer {
 public:
  ShortConvOp(std::int64_t width, std::int64_t kernel, ops::Activation activation)
      : OpLayer("short_conv", width, {{"conv_state", {kernel, width}}}),
        activation_(activation),
        weight_(add_parameter("weight", random("weight", {width, kernel}))),
        bias_(add_parameter("bias", random("bias", {width}))) {}

  LayerOutput reference(const Tensor& x, const State& state, const Segments& segments) const override {
    const Tensor y = Tensor::empty(x.shape(), DType::F64);
    const ops::ShortConvInputs<double> in{x.view<const double, 2>(), weight_.value.value().view<const double, 2>(),
                                          bias_.value.value().data<double>(), activation_};
    ops::reference::short_conv(in, segments, state[0].value().view<double, 3>(), y.view<double, 2>());
    return with_state(y, state[0]);
  }

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const override {
    auto [y, last] = short_conv(ctx, x, weight_.value, bias_.value, state.take(0), segments, activation_);
    return with_state(std::move(y), std::move(last));
  }

 private:
  ops::Activation activation_;
  layers::Parameter &weight_, &bias_;
};

struct ScanOptions {
  const char* name;
  std::int64_t D, N, groups;  // groups 0: B and C constant in time
  bool z, skip, bias, softplus;
  ops::Discretisation discretisation;
};

// Columns of x: u [D], dt [D], z [D], B [G·N], C [G·N]; dt is made positive by softplus where the op does not do it.
class SelectiveScanOp final : public OpLayer {
 public:
  explicit SelectiveScanOp(const ScanOptions& o)
      : OpLayer("selective_scan", 3 * o.D + 2 * o.groups * o.N, {{"h", {o.N, o.D}}}),
        o_(o),
        a_log_(add_parameter("A_log", random("A_log", {o.D, o.N}, 0.5, 1))),
        skip_(add_parameter("D", random("D", {o.D}))),
        bias_(add_parameter("dt_bias", random("dt_bias", {o.D}, -1, 1))) {
    if (o.groups == 0) {
      b_ = &add_parameter("B", random("B", {o.D, o.N}));
      c_ = &add_parameter("C", random("C", {o.D, o.N}));
    }
  }

  LayerOutput reference(const Tensor& x, const State& state, const Segments& segments) const override {
    NoGrad no_grad;
    Context ctx = Context::serial();
    const SelectiveScanArguments a = arguments(ctx, x);
    auto rows = [](const Variable& v) { return v ? v.value().view<const double, 2>() : View<const double, 2>(); };
    auto grouped = [&](const Variable& v) {
      const std::int64_t G = o_.groups == 0 ? 1 : o_.groups;
      return v.value().clone().reshape({v.size(0), G, o_.N});
    };
    const Tensor B = grouped(a.B), C = grouped(a.C);
    ops::SelectiveScanInputs<double> in;
    in.u = rows(a.u);
    in.dt = rows(a.dt);
    in.A = rows(a.A);
    in.B = B.view<const double, 3>();
    in.C = C.view<const double, 3>();
    in.z = rows(a.z);
    in.D = a.D ? a.D.value().data<double>() : nullptr;
    in.dt_bias = a.dt_bias ? a.dt_bias.value().data<double>() : nullptr;
    in.softplus = a.softplus;
    in.constant_bc = a.constant_bc;
    in.discretisation = a.discretisation;
    const Tensor y = Tensor::empty({x.size(0), o_.D}, DType::F64);
    ops::reference::selective_scan<double>(in, segments, state[0].value().view<double, 3>(), y.view<double, 2>(), {});
    return with_state(y, state[0]);
  }

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const override {
    auto [y, h] = selective_scan(ctx, arguments(ctx, x), state.take(0), segments);
    return with_state(std::move(y), std::move(h));
  }

 private:
  SelectiveScanArguments arguments(Context& ctx, const Variable& x) const {
    const std::int64_t bc = o_.groups * o_.N;
    const std::int64_t widths[] = {o_.D, o_.D, o_.D, bc, bc};
    const std::vector<Variable> parts = split(ctx, x, widths);
    SelectiveScanArguments in;
    in.u = parts[0];
    in.dt = o_.softplus ? parts[1] : softplus(ctx, parts[1]);
    in.A = scale(ctx, exp(ctx, a_log_.value), -1);
    in.constant_bc = o_.groups == 0;
    auto per_group = [&](const Variable& v) {
      return o_.groups > 1 ? reshape(ctx, v, {v.size(0), o_.groups, o_.N}) : v;
    };
    in.B = in.constant_bc ? b_->value : per_group(parts[3]);
    in.C = in.constant_bc ? c_->value : per_group(parts[4]);
    if (o_.z) in.z = parts[2];
    if (o_.skip) in.D = skip_.value;
    if (o_.bias) in.dt_bias = bias_.value;
    in.softplus = o_.softplus;
    in.discretisation = o_.discretisation;
    return in;
  }

  ScanOptions o_;
  layers::Parameter &a_log_, &skip_, &bias_;
  layers::Parameter *b_ = nullptr, *c_ = nullptr;
};

// Columns of x: q [H·K], k [H·K], v [H·V]; a bias on v, so that the layer has a parameter.
class LinearAttentionOp final : public OpLayer {
 public:
  LinearAttentionOp(std::int64_t heads, std::int64_t key, std::int64_t value)
      : OpLayer("linear_attention", heads * (2 * key + value), {{"recurrent_state", {heads, key, value}}}),
        heads_(heads),
        key_(key),
        value_(value),
        bias_(add_parameter("v_bias", random("v_bias", {heads * value}))) {}

  LayerOutput reference(const Tensor& x, const State& state, const Segments& segments) const override {
    const std::int64_t L = x.size(0), keys = heads_ * key_;
    auto part = [&](std::int64_t from, std::int64_t width) {
      return x.slice(-1, from, heads_ * width).clone().reshape({L, heads_, width});
    };
    const Tensor q = part(0, key_), k = part(keys, key_), v = part(2 * keys, value_);
    for (std::int64_t i = 0; i < v.numel(); ++i)
      v.data<double>()[i] += bias_.value.value().at(i % bias_.value.value().numel());
    const Tensor decay = decays(DType::F64), y = Tensor::empty({L, heads_, value_}, DType::F64);
    const ops::LinearAttentionInputs<double> in{q.view<const double, 3>(), k.view<const double, 3>(),
                                                v.view<const double, 3>(), decay.data<double>(), kScale};
    const Tensor s = state[0].value().reshape({state[0].size(0) * heads_, key_, value_});
    ops::reference::linear_attention(in, segments, s.view<double, 3>(), y.view<double, 3>());
    return with_state(y.reshape({L, heads_ * value_}), state[0]);
  }

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const override {
    const std::int64_t L = x.size(0);
    const std::int64_t widths[] = {heads_ * key_, heads_ * key_, heads_ * value_};
    const std::vector<Variable> parts = split(ctx, x, widths);
    auto heads = [&](const Variable& v, std::int64_t width) { return reshape(ctx, v, {L, heads_, width}); };
    auto [y, last] = linear_attention(ctx, heads(parts[0], key_), heads(parts[1], key_),
                                      heads(add(ctx, parts[2], bias_.value), value_), decays(x.dtype()), kScale,
                                      state.take(0), segments);
    return with_state(reshape(ctx, y, {L, heads_ * value_}), std::move(last));
  }

 private:
  static constexpr double kScale = 0.5;
  Tensor decays(DType dtype) const {
    const Tensor decay = Tensor::empty({heads_}, DType::F64);
    for (std::int64_t h = 0; h < heads_; ++h) decay.data<double>()[h] = 1 - 0.5 / static_cast<double>(h + 1);
    return decay.to(dtype);
  }
  std::int64_t heads_, key_, value_;
  layers::Parameter& bias_;
};

void add_op(std::vector<Subject>& subjects, std::string variant, std::unique_ptr<OpLayer> op) {
  Subject subject;
  subject.name = fmt::format("op {}", op->type());
  subject.variant = std::move(variant);
  subject.reference = [op = op.get()](const Tensor& x, const State& state, const Segments& segments) {
    return op->reference(x, state, segments);
  };
  subject.layer = std::move(op);
  subjects.push_back(std::move(subject));
}

}  // namespace

std::vector<Subject> all_subjects() {
  std::vector<Subject> subjects;
  for (const auto& [in, out] : {std::pair{5, 7}, std::pair{300, 33}}) {
    add_op(subjects, fmt::format("{}→{}", in, out), std::make_unique<MatmulOp>(in, out));
  }
  for (const int kernel : {1, 2, 4, 7}) {
    const auto activation = kernel == 2 ? ops::Activation::None : ops::Activation::Silu;
    add_op(subjects, fmt::format("kernel {}", kernel), std::make_unique<ShortConvOp>(19, kernel, activation));
  }
  using enum ops::Discretisation;
  for (const ScanOptions& o : {ScanOptions{"all options", 35, 16, 1, true, true, true, true, Euler},
                               ScanOptions{"bare", 17, 5, 1, false, false, false, false, Euler},
                               ScanOptions{"grouped", 12, 4, 3, true, false, true, true, Euler},
                               ScanOptions{"constant B, C", 9, 3, 0, false, true, false, true, Euler},
                               ScanOptions{"zero-order hold", 7, 8, 1, true, true, true, true, ZeroOrder}}) {
    add_op(subjects, o.name, std::make_unique<SelectiveScanOp>(o));
  }
  add_op(subjects, "3 heads 4×5", std::make_unique<LinearAttentionOp>(3, 4, 5));
  add_op(subjects, "2 heads 16×33", std::make_unique<LinearAttentionOp>(2, 16, 33));

  for (const layers::MixerRow& row : layers::mixers()) {
    for (const std::string_view text : row.conformance_options) {
      constexpr std::int64_t kWidth = 12;
      Subject subject;
      subject.name = fmt::format("layer {}", row.name);
      subject.variant = std::string(text);
      subject.mixer = std::string(row.name);
      subject.options = io::parse_json(text, subject.name);
      subject.layer = row.make(kWidth, subject.options, Rng(17).stream(subject.name));
      subjects.push_back(std::move(subject));
    }
  }
  return subjects;
}

}  // namespace stepwell::verify
