// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "verify/xlstm_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "models/xlstm_stack.h"

namespace stepwell::verify {

namespace {

// x [a, b, c, …] with the second and the third dimension exchanged: [a, c, b, …].
Variable exchange_middle(Context& ctx, const Variable& x) {
  const Shape& s = x.shape();
  const std::int64_t a = s[0], b = s[1], c = s[2], width = s.rank() == 4 ? s[3] : 1;
  const Tensor order = Tensor::empty({a * b * c}, DType::I64);
  for (std::int64_t i = 0; i < a * b * c; ++i) {
    order.data<std::int64_t>()[i] = (i / (b * c) * b + i % b) * c + i / b % c;
  }
  const Variable rows = gather_rows(ctx, reshape(ctx, x, {a * b * c, width}), order);
  return reshape(ctx, rows, s.rank() == 4 ? Shape{a, c, b, width} : Shape{a, c, b});
}

Variable leaf_of(const CaseRun& run, const std::string& name) {
  const auto found = run.leaves.find(name);
  return found == run.leaves.end() ? Variable() : found->second;
}

}  // namespace

CaseRun run_mlstm_in(Context& ctx, const CaseFile& file, DType dtype, std::int64_t chunk) {
  constexpr std::string_view kGates[] = {"exp", "sigmoid"};
  constexpr std::string_view kStarts[] = {"zero", "minus_infinity", "given"};
  ConfigReader config(file.config(), file.name());
  MlstmArguments in;
  in.input_gate = static_cast<ops::InputGate>(config.choice("input_gate", "exp", kGates));
  in.normalise = config.boolean("normalize", true);
  in.eps = config.number("eps", 1e-6, 0, 1);
  const int start = config.choice("m0", "zero", kStarts);
  config.finish();

  CaseRun run;
  run.leaves = leaves_of(file, dtype);
  const auto leaf = [&](const char* name) { return leaf_of(run, std::string("in.") + name); };
  const Variable q = leaf("q");
  const std::int64_t B = q.size(0), H = q.size(1), time = q.size(2), K = q.size(3), V = leaf("v").size(3);
  // Head before time in the file, tokens here.
  const auto rows = [&](const char* name, const Shape& shape) {
    return reshape(ctx, exchange_middle(ctx, leaf(name)), shape);
  };
  in.q = rows("q", {B * time, H, K});
  in.k = rows("k", {B * time, H, K});
  in.v = rows("v", {B * time, H, V});
  in.i = rows("i", {B * time, H});
  in.f = rows("f", {B * time, H});
  in.scale = 1 / std::sqrt(static_cast<double>(K));
  in.form = chunk == kRecurrent ? ops::Form::Recurrent : ops::Form::Chunked;
  in.chunk = chunk == kParallel ? std::max<std::int64_t>(1, time) : chunk;
  MlstmVariables state;
  if (start == 2) {
    state = {pack_state(ctx, leaf("C0")), leaf("n0"), leaf("m0")};
  } else if (start == 1) {
    state = {Tensor::zeros({B, H, ops::state_units(V), K, ops::kStateUnit}, dtype), Tensor::zeros({B, H, K}, dtype),
             Tensor::full({B, H}, -std::numeric_limits<double>::infinity(), dtype)};
  }
  auto [h, last] = mlstm(ctx, in, std::move(state), Segments::uniform(B, time));
  run.outputs.emplace("h", exchange_middle(ctx, reshape(ctx, h, {B, time, H, V})));
  run.outputs.emplace("C", unpack_state(ctx, last.C, V));
  run.outputs.emplace("n", last.n);
  run.outputs.emplace("m", last.m);
  return run;
}

CaseRun run_slstm(Context& ctx, const CaseFile& file, DType dtype) {
  constexpr std::string_view kBackends[] = {"vanilla"};
  ConfigReader config(file.config(), file.name());
  const std::int64_t H = config.integer("num_heads", 1, 1, 1 << 20), D = config.integer("head_dim", 1, 1, 1 << 20);
  config.choice("backend", "vanilla", kBackends);
  config.finish();
  CaseRun run;
  run.leaves = leaves_of(file, dtype);
  for (const auto& [name, tensor] : file.tensors("param.")) {
    run.leaves.emplace("param." + name, Variable::leaf(tensor.to(dtype).clone()));
  }
  const Variable x = leaf_of(run, "in.x");
  const std::int64_t B = x.size(0), time = x.size(1);
  const auto by_sequence = [&](const Variable& state, std::int64_t first, std::int64_t second) {
    return reshape(ctx, exchange_middle(ctx, reshape(ctx, state, {1, first, second, H * D})), {second, first, H * D});
  };
  auto [y, last] =
      slstm(ctx, reshape(ctx, x, {B * time, 4 * H * D}), leaf_of(run, "param._recurrent_kernel_"),
            leaf_of(run, "param._bias_"), by_sequence(leaf_of(run, "in.state"), 4, B), Segments::uniform(B, time));
  run.outputs.emplace("y", exchange_middle(ctx, reshape(ctx, y, {B, time, H, D})));
  run.outputs.emplace("state", by_sequence(last, B, 4));
  return run;
}

CaseRun run_block_stack(Context& ctx, const CaseFile& file, DType dtype) {
  ConfigReader config(file.config(), file.name());
  if (const std::string type = config.text("type", ""); type != "xlstm") {
    fail(ErrorCode::Unsupported, file.name(), "there is no block stack " + type);
  }
  Config described = config.child("model");
  described.set("m0", config.text("m0", "zero"));
  models::XlstmStack stack(models::plan_xlstm(described), Rng(0));
  stack.to(dtype);
  stack.set_named_parameters(file.tensors("param."));
  CaseRun run;
  run.leaves = leaves_of(file, dtype);
  for (const layers::Parameter* p : std::as_const(stack).parameters()) run.leaves.emplace("param." + p->name, p->value);
  models::States states;
  run.outputs.emplace("y", stack.forward(ctx, leaf_of(run, "in.x"), states));
  return run;
}

}  // namespace stepwell::verify
