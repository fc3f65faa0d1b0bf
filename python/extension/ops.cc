// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "python/extension/ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "stepwell/autograd/functions.h"

#include "layers/ssd.h"
#include "verify/delta_cases.h"

namespace stepwell::python {

namespace {

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;

// What the runners read a request through.
class Reader {
 public:
  Reader(Context& context, const OpRequest& request)
      : ctx(context), options(request.options, request.op), request_(request) {}

  Context& ctx;
  ConfigReader options;

  Variable array(const std::string& name) const {
    const auto found = request_.arrays.find(name);
    return found == request_.arrays.end() ? Variable() : found->second;
  }

  // A token array [B, T, …] as rows [B·T, …]; undefined if absent. All of a request have one batch and one time.
  // `rule` is the expected shape, for messages.
  Variable rows(const std::string& name, const std::string& rule) {
    const Variable v = array(name);
    if (!v) return v;
    const Shape& shape = v.shape();
    const auto rank = static_cast<int>(std::count(rule.begin(), rule.end(), ',')) + 1;
    STEPWELL_CHECK(shape.rank() == rank, request_.op, name + " is " + shape.to_string() + ", expected " + rule);
    if (!leading_) leading_ = {shape[0], shape[1], name};
    STEPWELL_CHECK(shape[0] == leading_->batch && shape[1] == leading_->time, request_.op,
                   name + " is " + shape.to_string() + ", expected " + rule + " with the batch and time of " +
                       leading_->name + ", " + Shape({leading_->batch, leading_->time}).to_string());
    return reshape(ctx, v, folded(shape));
  }
  Variable required_rows(const std::string& name, const std::string& rule) {
    STEPWELL_CHECK(array(name).defined(), request_.op, name + " is missing, expected " + rule);
    return rows(name, rule);
  }

  // [B·T, …] as [B, T, …].
  Variable batched(const Variable& v) const {
    std::array<std::int64_t, Shape::kMaxRank> extents{leading_->batch, leading_->time};
    for (int i = 1; i < v.shape().rank(); ++i) extents[static_cast<std::size_t>(i) + 1] = v.size(i);
    return reshape(ctx, v, Shape(std::span(extents).first(static_cast<std::size_t>(v.shape().rank()) + 1)));
  }

  Segments segments() const {
    if (!request_.packed) return Segments::uniform(leading_->batch, leading_->time);
    STEPWELL_CHECK(leading_->batch == 1, request_.op,
                   "cu_seqlens with a batch of " + std::to_string(leading_->batch) +
                       ", expected the sequences packed in a batch of 1");
    return Segments::from_offsets(request_.borders, leading_->time);
  }

  // "recurrent": the same bits however a sequence is split. "fast": what Mode::Fast chooses.
  ops::Form form() {
    constexpr std::string_view kForms[] = {"recurrent", "chunked", "fast"};
    const int choice = options.choice("form", "recurrent", kForms);
    if (choice == 2) ctx.set_mode(Mode::Fast);
    return choice == 0 ? ops::Form::Recurrent : choice == 1 ? ops::Form::Chunked : ops::Form::Auto;
  }
  std::int64_t chunk() { return options.integer("chunk", 0, 0, kMostTokens); }

  // A state of `rank` dimensions; undefined if absent.
  Variable state(const std::string& name, const std::string& rule) const {
    const Variable v = array(name);
    const auto rank = static_cast<int>(std::count(rule.begin(), rule.end(), ',')) + 1;
    STEPWELL_CHECK(!v || v.shape().rank() == rank, request_.op,
                   name + " is " + v.shape().to_string() + ", expected " + rule);
    return v;
  }
  // The extents of a state, for the messages of what would otherwise see another layout of it.
  void check_state(const std::string& name, const Variable& v, const Shape& expected) const {
    STEPWELL_CHECK(!v || v.shape() == expected, request_.op,
                   name + " is " + v.shape().to_string() + ", expected " + expected.to_string());
  }

 private:
  struct Leading {
    std::int64_t batch, time;
    std::string name;
  };
  static Shape folded(const Shape& shape) {
    std::array<std::int64_t, Shape::kMaxRank> extents{shape[0] * shape[1]};
    for (int i = 2; i < shape.rank(); ++i) extents[static_cast<std::size_t>(i) - 1] = shape[i];
    return Shape(std::span(extents).first(static_cast<std::size_t>(shape.rank()) - 1));
  }

  const OpRequest& request_;
  std::optional<Leading> leading_;
};

// ------------------------------------------------------------------------------------------------ matrix memories

// The inputs of the gated delta rule. Gates are per head, [B, T, heads], or per channel, [B, T, heads, width].
GatedDeltaArguments delta_arguments(Reader& r) {
  std::map<std::string, Variable> named;
  for (const char* name : {"q", "k", "v"})
    named["in." + std::string(name)] = r.required_rows(name, "[B, T, heads, width]");
  for (const char* name : {"g", "b", "w", "beta"}) {
    const Variable gate = r.array(name);
    if (!gate) continue;
    const bool per_head = gate.shape().rank() == 3;
    const Variable rows = r.rows(name, per_head ? "[B, T, heads]" : "[B, T, heads, width]");
    named["in." + std::string(name)] = per_head ? reshape(r.ctx, rows, {rows.size(0), rows.size(1), 1}) : rows;
  }
  for (const char* name : {"A_log", "dt_bias"}) {
    if (const Variable v = r.array(name)) named["in." + std::string(name)] = v;
  }
  // delta_arguments folds the leading dimensions: here they are of extent 1.
  for (auto& [name, v] : named) {
    if (v.shape().rank() == 3) v = reshape(r.ctx, v, {1, v.size(0), v.size(1), v.size(2)});
  }
  return verify::delta_arguments(r.ctx, named, r.options);
}

struct DeltaState {
  Variable packed;
  Segments segments;
};
DeltaState delta_state(Reader& r, const GatedDeltaArguments& in) {
  const Segments segments = r.segments();
  const Variable initial = r.state("initial_state", "[N, HV, K, V]");
  r.check_state("initial_state", initial, {segments.count(), in.v.size(1), in.q.size(2), in.v.size(2)});
  return {initial ? pack_state(r.ctx, initial) : Variable(), segments};
}

Results run_gated_delta(Reader& r) {
  GatedDeltaArguments in = delta_arguments(r);
  in.form = r.form();
  in.chunk = r.chunk();
  r.options.finish();
  auto [state, segments] = delta_state(r, in);
  auto [o, last] = gated_delta(r.ctx, in, std::move(state), segments);
  return {{"o", r.batched(o)}, {"final_state", unpack_state(r.ctx, last, in.v.size(2))}};
}

Results run_ssd(Reader& r) {
  layers::SsdArguments in;
  in.x = r.required_rows("x", "[B, T, H, P]");
  in.dt = r.required_rows("dt", "[B, T, H]");
  in.A = r.array("A");
  in.B = r.required_rows("B", "[B, T, G, N]");
  in.C = r.required_rows("C", "[B, T, G, N]");
  in.D = r.array("D");
  in.dt_bias = r.array("dt_bias");
  const Variable z = r.rows("z", "[B, T, H, P]");
  const std::int64_t H = in.x.size(1), P = in.x.size(2);
  r.check_state("dt", in.dt, {in.x.size(0), H});
  r.check_state("A", in.A, {H});
  r.check_state("dt_bias", in.dt_bias, {H});
  if (in.D) r.check_state("D", in.D, in.D.shape().rank() == 1 ? Shape{H} : Shape{H, P});
  r.check_state("z", z, in.x.shape());
  in.softplus = r.options.boolean("softplus", true);
  in.dt_limit = layers::read_step_limits(r.options, "dt_limit");
  in.form = r.form();
  in.chunk = r.chunk();
  r.options.finish();
  const Segments segments = r.segments();
  const Variable initial = r.state("initial_state", "[N, H, P, N]");
  r.check_state("initial_state", initial, {segments.count(), H, P, in.B.size(2)});
  const Variable packed = initial ? pack_state(r.ctx, transpose_last2(r.ctx, initial)) : Variable();
  auto [y, last] = layers::ssd(r.ctx, in, packed, segments);
  if (z) y = mul(r.ctx, y, silu(r.ctx, z));
  return {{"y", r.batched(y)}, {"final_state", transpose_last2(r.ctx, unpack_state(r.ctx, last, P))}};
}

Results run_mlstm(Reader& r) {
  constexpr std::string_view kGates[] = {"exp", "sigmoid"};
  MlstmArguments in;
  in.q = r.required_rows("q", "[B, T, H, K]");
  in.k = r.required_rows("k", "[B, T, H, K]");
  in.v = r.required_rows("v", "[B, T, H, V]");
  in.i = r.required_rows("i", "[B, T, H]");
  in.f = r.required_rows("f", "[B, T, H]");
  in.scale = r.options.number("scale", 1 / std::sqrt(static_cast<double>(in.q.size(2))), -kLargest, kLargest);
  in.input_gate = static_cast<ops::InputGate>(r.options.choice("input_gate", "exp", kGates));
  in.normalise = r.options.boolean("normalise", true);
  in.eps = r.options.number("eps", 1e-6, 0, kLargest);
  in.form = r.form();
  in.chunk = r.chunk();
  r.options.finish();
  const Segments segments = r.segments();
  const std::int64_t S = segments.count(), H = in.q.size(1), K = in.q.size(2), V = in.v.size(2);
  const Variable C = r.array("C"), n = r.array("n"), m = r.array("m");
  r.check_state("C", C, {S, H, K, V});
  r.check_state("n", n, {S, H, K});
  r.check_state("m", m, {S, H});
  auto [h, last] = mlstm(r.ctx, in, {C ? pack_state(r.ctx, C) : Variable(), n, m}, segments);
  return {{"h", r.batched(h)}, {"C", unpack_state(r.ctx, last.C, V)}, {"n", last.n}, {"m", last.m}};
}

// ------------------------------------------------------------------------------------------------ vector memories

Results run_selective_scan(Reader& r) {
  constexpr std::string_view kRules[] = {"euler", "zero_order"};
  SelectiveScanArguments in;
  in.u = r.required_rows("u", "[B, T, D]");
  in.dt = r.required_rows("dt", "[B, T, D]");
  in.A = r.array("A");
  const Variable B = r.array("B"), C = r.array("C");
  in.constant_bc = B.shape().rank() == 2;
  const auto map = [&](const char* name, const Variable& v) {
    if (in.constant_bc) return v;
    return r.rows(name, v.shape().rank() == 4 ? "[B, T, G, N]" : "[B, T, N]");
  };
  in.B = map("B", B);
  in.C = map("C", C);
  in.z = r.rows("z", "[B, T, D]");
  in.D = r.array("D");
  in.dt_bias = r.array("dt_bias");
  in.softplus = r.options.boolean("softplus", true);
  in.discretisation = static_cast<ops::Discretisation>(r.options.choice("discretisation", "euler", kRules));
  r.options.finish();
  const Segments segments = r.segments();
  const Variable initial = r.state("initial_state", "[N, D, states]");
  if (in.A.shape().rank() == 2) r.check_state("initial_state", initial, {segments.count(), in.u.size(1), in.A.size(1)});
  auto [y, last] = selective_scan(r.ctx, in, initial ? transpose_last2(r.ctx, initial) : Variable(), segments);
  return {{"y", r.batched(y)}, {"final_state", transpose_last2(r.ctx, last)}};
}

Results run_short_conv(Reader& r) {
  constexpr std::string_view kActivations[] = {"none", "silu"};
  const Variable x = r.required_rows("x", "[B, T, D]"), weight = r.array("weight");
  const auto activation = static_cast<ops::Activation>(r.options.choice("activation", "silu", kActivations));
  r.options.finish();
  const Segments segments = r.segments();
  const Variable initial = r.state("initial_state", "[N, D, K]");
  if (weight.shape().rank() > 0) {
    r.check_state("initial_state", initial, {segments.count(), x.size(1), weight.size(-1)});
  }
  auto [y, last] = short_conv(r.ctx, x, weight, r.array("bias"), initial ? transpose_last2(r.ctx, initial) : Variable(),
                              segments, activation);
  return {{"y", r.batched(y)}, {"final_state", transpose_last2(r.ctx, last)}};
}

Results run_slstm(Reader& r) {
  r.options.finish();
  const Variable x = r.required_rows("x", "[B, T, 4*H*D]");
  auto [y, last] = slstm(r.ctx, x, r.array("R"), r.array("bias"), r.array("initial_state"), r.segments());
  return {{"y", r.batched(y)}, {"final_state", last}};
}

// ------------------------------------------------------------------------------------------- products and functions

Results run_matmul(Reader& r) {
  constexpr std::string_view kProducts[] = {"AB", "ABt", "AtB"};
  const auto product = static_cast<ops::Product>(r.options.choice("product", "AB", kProducts));
  r.options.finish();
  return {{"c", matmul(r.ctx, r.array("a"), r.array("b"), product)}};
}

Results run_linear(Reader& r) {
  r.options.finish();
  return {{"y", linear(r.ctx, r.array("x"), r.array("weight"), r.array("bias"))}};
}

Results run_headwise_linear(Reader& r) {
  r.options.finish();
  return {{"y", headwise_linear(r.ctx, r.array("x"), r.array("weight"), r.array("bias"))}};
}

Results run_rms_norm(Reader& r) {
  constexpr std::string_view kOrders[] = {"before", "after"}, kActivations[] = {"silu", "sigmoid"};
  const Variable x = r.array("x"), z = r.array("z"), weight = r.array("weight");
  const double eps = r.options.number("eps", 1e-5, 0, kLargest);
  const std::int64_t group = r.options.integer("group", 0, 0, kMostTokens);
  const auto order = static_cast<GateOrder>(r.options.choice("gate", "before", kOrders));
  const auto activation = static_cast<GateActivation>(r.options.choice("activation", "silu", kActivations));
  r.options.finish();
  return {{"y", z ? gated_rms_norm(r.ctx, x, z, weight, eps, order, group, activation)
                  : rms_norm(r.ctx, x, weight, eps, group)}};
}

Results run_layer_norm(Reader& r) {
  const double eps = r.options.number("eps", 1e-5, 0, kLargest);
  const std::int64_t group = r.options.integer("group", 0, 0, kMostTokens);
  const bool one_plus = r.options.boolean("one_plus_weight", false);
  r.options.finish();
  return {{"y", layer_norm(r.ctx, r.array("x"), r.array("weight"), r.array("bias"), eps, group, one_plus)}};
}

Results run_softmax(Reader& r) {
  r.options.finish();
  return {{"y", softmax(r.ctx, r.array("x"))}};
}

Results run_elementwise(Reader& r) {
  struct Function {
    std::string_view name;
    Variable (*run)(Context& ctx, const Variable& x);
  };
  constexpr Function kFunctions[] = {
      {"exp", stepwell::exp},
      {"tanh", stepwell::tanh},
      {"sigmoid", sigmoid},
      {"log_sigmoid", log_sigmoid},
      {"silu", silu},
      {"softplus", softplus},
      {"elu_plus_one", elu_plus_one},
      {"relu", relu},
      {"decay_rate", decay_rate},
      {"gelu", [](Context& ctx, const Variable& x) { return gelu(ctx, x, Gelu::Erf); }},
      {"gelu_tanh", [](Context& ctx, const Variable& x) { return gelu(ctx, x, Gelu::Tanh); }},
  };
  std::array<std::string_view, std::size(kFunctions)> names;
  std::transform(std::begin(kFunctions), std::end(kFunctions), names.begin(), [](const Function& f) { return f.name; });
  const int choice = r.options.choice("function", "silu", names);
  r.options.finish();
  return {{"y", kFunctions[choice].run(r.ctx, r.array("x"))}};
}

struct Op {
  std::string_view name;
  Results (*run)(Reader& r);
};
constexpr Op kOps[] = {
    {"gated_delta", run_gated_delta},
    {"ssd", run_ssd},
    {"mlstm", run_mlstm},
    {"selective_scan", run_selective_scan},
    {"short_conv", run_short_conv},
    {"slstm", run_slstm},
    {"matmul", run_matmul},
    {"linear", run_linear},
    {"headwise_linear", run_headwise_linear},
    {"rms_norm", run_rms_norm},
    {"layer_norm", run_layer_norm},
    {"softmax", run_softmax},
    {"elementwise", run_elementwise},
};

}  // namespace

Results run_op(Context& ctx, const OpRequest& request) {
  for (const Op& op : kOps) {
    if (op.name != request.op) continue;
    Reader reader(ctx, request);
    return op.run(reader);
  }
  fail(ErrorCode::Argument, "ops", "there is no op " + request.op);
}

std::vector<ops::FormDifference> verify_delta(Context& ctx, const OpRequest& request) {
  const NoGrad constant;
  Reader r(ctx, request);
  const GatedDeltaArguments in = delta_arguments(r);
  const std::int64_t chunk = r.options.integer("chunk", 64, 1, kMostTokens);
  r.options.finish();
  const auto [state, segments] = delta_state(r, in);
  return verify::delta_differences(ctx, in, state, segments, chunk);
}

}  // namespace stepwell::python
