// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "stepwell/io/json.h"
#include "stepwell/layers/registry.h"
#include "stepwell/verify/verify.h"

#include "ops/gated_delta/reference.h"
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

struct DeltaOptions {
  const char* name;
  std::int64_t H, G, K, V;  // G value heads to a key head
  int decay, erase, write;  // 0: none, 1: one number per head, 2: per channel
  ops::DecayGate gate;
};

// Columns of x: q, k [H·K], v [HV·V], then what the gates are made of; a bias on v, so that every variant has a
// parameter.
class GatedDeltaOp final : public OpLayer {
 public:
  explicit GatedDeltaOp(const DeltaOptions& o)
      : OpLayer("gated_delta", width_of(o), {{"state", {o.H * o.G, ops::state_units(o.V), o.K, ops::kStateUnit}}}),
        o_(o),
        bias_(add_parameter("v_bias", random("v_bias", {o.H * o.G * o.V}))) {
    if (o.gate == ops::DecayGate::Given) return;
    a_log_ = &add_parameter("A_log", random("A_log", {o.H}, 0, 0.5));
    dt_bias_ = &add_parameter("dt_bias", random("dt_bias", {o.H * channels(o.decay, o.K)}));
  }

  LayerOutput reference(const Tensor& x, const State& state, const Segments& segments) const override {
    NoGrad no_grad;
    Context ctx = Context::serial();
    const GatedDeltaArguments a = arguments(ctx, x);
    const auto view = [](const Variable& v) { return v ? v.value().view<const double, 3>() : View<const double, 3>(); };
    ops::GatedDeltaInputs<double> in;
    in.q = view(a.q);
    in.k = view(a.k);
    in.v = view(a.v);
    in.g = view(a.g);
    in.b = view(a.b);
    in.w = view(a.w);
    in.scale = a.scale;
    in.l2norm = a.l2norm;
    in.gate = a.gate;
    in.A_log = a.A_log ? a.A_log.value().data<double>() : nullptr;
    in.dt_bias = a.dt_bias ? a.dt_bias.value().data<double>() : nullptr;
    const std::int64_t HV = o_.H * o_.G;
    const Tensor y = Tensor::empty({x.size(0), HV, o_.V}, DType::F64);
    const Shape& s = state[0].shape();
    const Tensor per_head = state[0].value().reshape({s[0] * s[1], s[2], s[3], s[4]});
    ops::reference::gated_delta<double>(in, segments, per_head.view<double, 4>(), y.view<double, 3>());
    return with_state(y.reshape({x.size(0), HV * o_.V}), state[0]);
  }

 protected:
  LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const override {
    auto [y, last] = gated_delta(ctx, arguments(ctx, x), state.take(0), segments);
    return with_state(reshape(ctx, y, {x.size(0), y.size(1) * y.size(2)}), std::move(last));
  }

 private:
  static std::int64_t channels(int kind, std::int64_t all) { return kind == 2 ? all : kind; }
  static std::int64_t width_of(const DeltaOptions& o) {
    return 2 * o.H * o.K + o.H * o.G * o.V + o.H * (channels(o.decay, o.K) + channels(o.erase, o.K)) +
           o.H * o.G * channels(o.write, o.V);
  }

  GatedDeltaArguments arguments(Context& ctx, const Variable& x) const {
    const std::int64_t L = x.size(0), HV = o_.H * o_.G, decay = channels(o_.decay, o_.K),
                       erase = channels(o_.erase, o_.K), write = channels(o_.write, o_.V);
    const std::int64_t widths[] = {o_.H * o_.K, o_.H * o_.K, HV * o_.V, o_.H * decay, o_.H * erase, HV * write};
    const std::vector<Variable> parts = split(ctx, x, widths);
    const auto heads = [&](const Variable& v, std::int64_t count) {
      return reshape(ctx, v, {L, count, v.size(1) / count});
    };
    GatedDeltaArguments in;
    in.q = heads(parts[0], o_.H);
    in.k = heads(parts[1], o_.H);
    in.v = heads(add(ctx, parts[2], bias_.value), HV);
    if (o_.decay) in.g = heads(a_log_ ? parts[3] : log_sigmoid(ctx, parts[3]), o_.H);
    if (o_.erase) in.b = heads(sigmoid(ctx, parts[4]), o_.H);
    if (o_.write) in.w = heads(sigmoid(ctx, parts[5]), HV);
    in.scale = 0.5;
    in.l2norm = true;
    in.gate = o_.gate;
    if (a_log_) {
      in.A_log = a_log_->value;
      in.dt_bias = dt_bias_->value;
    }
    return in;
  }

  DeltaOptions o_;
  layers::Parameter& bias_;
  layers::Parameter *a_log_ = nullptr, *dt_bias_ = nullptr;
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
  using enum ops::DecayGate;
  for (const DeltaOptions& o :
       {DeltaOptions{"GDN-2", 2, 1, 5, 19, 2, 2, 2, Given},
        DeltaOptions{"GDN-2, gate inside, grouped", 1, 3, 16, 7, 2, 2, 2, Softplus},
        DeltaOptions{"KDA, bounded gate", 2, 1, 6, 16, 2, 1, 1, Bounded},
        DeltaOptions{"Gated DeltaNet", 2, 2, 4, 5, 1, 1, 1, Softplus},
        DeltaOptions{"DeltaNet", 1, 1, 7, 33, 0, 1, 1, Given}, DeltaOptions{"GLA", 2, 1, 5, 8, 2, 0, 0, Given},
        DeltaOptions{"SSD", 1, 4, 9, 3, 1, 0, 1, Given},
        DeltaOptions{"linear attention", 3, 1, 4, 5, 0, 0, 0, Given}}) {
    add_op(subjects, o.name, std::make_unique<GatedDeltaOp>(o));
  }

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
