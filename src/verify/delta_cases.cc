// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "verify/delta_cases.h"

#include <cmath>
#include <limits>

#include "stepwell/autograd/functions.h"

#include "layers/ssd.h"

namespace stepwell::verify {

namespace {

ops::Form form_of(std::int64_t chunk) { return chunk == kRecurrent ? ops::Form::Recurrent : ops::Form::Chunked; }

Variable leaf_of(const CaseRun& run, const char* name) {
  const auto found = run.leaves.find(std::string("in.") + name);
  return found == run.leaves.end() ? Variable() : found->second;
}

// [B, T, heads, width], or [B, T, heads] with a width of 1, as token rows [B·T, heads, width].
Variable token_rows(Context& ctx, const Variable& v) {
  if (!v) return v;
  return reshape(ctx, v, {v.size(0) * v.size(1), v.size(2), v.shape().rank() == 3 ? 1 : v.size(3)});
}

ops::DecayGate gate_of(ConfigReader& config) {
  constexpr std::string_view kGates[] = {"given", "softplus", "bounded"};
  return static_cast<ops::DecayGate>(config.choice("gate", "given", kGates));
}

template <class T>
std::vector<ops::FormDifference> differences(Context& ctx, const GatedDeltaArguments& in, const Variable& state,
                                             const Segments& segments, std::int64_t chunk) {
  const auto view = [&](const Variable& v) {
    return v ? v.value().contiguous(ctx).template view<const T, 3>() : View<const T, 3>{};
  };
  ops::GatedDeltaInputs<T> x;
  x.q = view(in.q);
  x.k = view(in.k);
  x.v = view(in.v);
  x.g = view(in.g);
  x.b = view(in.b);
  x.w = view(in.w);
  x.scale = static_cast<T>(in.scale);
  x.l2norm = in.l2norm;
  x.gate = in.gate;
  x.A_log = in.A_log ? in.A_log.value().template data<T>() : nullptr;
  x.dt_bias = in.dt_bias ? in.dt_bias.value().template data<T>() : nullptr;
  x.lower_bound = static_cast<T>(in.lower_bound);
  View<const T, 4> start;
  if (state) {
    const Shape& s = state.shape();
    start = state.value().reshape({s[0] * s[1], s[2], s[3], s[4]}).template view<const T, 4>();
  }
  return ops::verify_gated_delta<T>(ctx, x, segments, start, chunk);
}

}  // namespace

GatedDeltaArguments delta_arguments(Context& ctx, const std::map<std::string, Variable>& leaves, ConfigReader& config) {
  const auto rows = [&](const char* name) {
    const auto found = leaves.find(std::string("in.") + name);
    return found == leaves.end() ? Variable() : token_rows(ctx, found->second);
  };
  const auto vector = [&](const char* name) {
    const auto found = leaves.find(std::string("in.") + name);
    return found == leaves.end() ? Variable() : found->second;
  };
  const Variable beta = rows("beta");
  GatedDeltaArguments in;
  in.q = rows("q");
  in.k = rows("k");
  in.v = rows("v");
  in.g = rows("g");
  in.b = beta ? beta : rows("b");
  in.w = beta ? beta : rows("w");
  in.A_log = vector("A_log");
  in.dt_bias = vector("dt_bias");
  constexpr double kLargest = std::numeric_limits<double>::max();
  const double scale = in.q ? 1 / std::sqrt(static_cast<double>(in.q.size(-1))) : 1;
  in.scale = config.number("scale", scale, -kLargest, kLargest);
  in.l2norm = config.boolean("l2norm", false);
  in.gate = gate_of(config);
  in.lower_bound = config.number("lower_bound", in.lower_bound, -kLargest, 0);
  return in;
}

std::vector<ops::FormDifference> delta_differences(Context& ctx, const GatedDeltaArguments& in, const Variable& state,
                                                   const Segments& segments, std::int64_t chunk) {
  gated_delta(ctx, in, state, segments);  // says what is wrong with the shapes
  return in.q.dtype() == DType::F64 ? differences<double>(ctx, in, state, segments, chunk)
                                    : differences<float>(ctx, in, state, segments, chunk);
}

CaseRun run_gated_delta_in(Context& ctx, const CaseFile& file, DType dtype, std::int64_t chunk) {
  CaseRun run;
  run.leaves = leaves_of(file, dtype);
  const Variable q = leaf_of(run, "q"), v = leaf_of(run, "v");
  ConfigReader config(file.config(), file.name());
  GatedDeltaArguments in = delta_arguments(ctx, run.leaves, config);
  in.form = form_of(chunk);
  in.chunk = chunk;

  const Tensor borders = file.find("in.cu_seqlens");
  const Segments segments = borders ? Segments::from_offsets(borders.span<const std::int64_t>(), in.q.size(0))
                                    : Segments::uniform(q.size(0), q.size(1));
  const Variable initial = leaf_of(run, "initial_state");
  auto [o, last] = gated_delta(ctx, in, initial ? pack_state(ctx, initial) : Variable(), segments);
  run.outputs.emplace("o", reshape(ctx, o, v.shape()));
  run.outputs.emplace("final_state", unpack_state(ctx, last, v.size(3)));
  return run;
}

CaseRun run_ssd_in(Context& ctx, const CaseFile& file, DType dtype, std::int64_t chunk) {
  CaseRun run;
  run.leaves = leaves_of(file, dtype);
  const Variable x = leaf_of(run, "x"), dt = leaf_of(run, "dt"), z = leaf_of(run, "z"), h0 = leaf_of(run, "h0");
  ConfigReader config(file.config(), file.name());
  layers::SsdArguments in;
  in.x = token_rows(ctx, x);
  in.dt = reshape(ctx, dt, {dt.size(0) * dt.size(1), dt.size(2)});
  in.A = leaf_of(run, "A");
  in.B = token_rows(ctx, leaf_of(run, "B"));
  in.C = token_rows(ctx, leaf_of(run, "C"));
  in.D = leaf_of(run, "D");
  in.dt_bias = leaf_of(run, "dt_bias");
  in.softplus = config.boolean("softplus", in.softplus);
  in.dt_limit = layers::read_step_limits(config, "dt_limit");
  in.form = form_of(chunk);
  in.chunk = chunk;
  // A published state is value-first, [B, H, P, N].
  auto [y, last] = ssd(ctx, in, pack_state(ctx, transpose_last2(ctx, h0)), Segments::uniform(x.size(0), x.size(1)));
  if (z) y = mul(ctx, y, silu(ctx, token_rows(ctx, z)));
  run.outputs.emplace("y", reshape(ctx, y, x.shape()));
  run.outputs.emplace("h", transpose_last2(ctx, unpack_state(ctx, last, x.size(3))));
  return run;
}

}  // namespace stepwell::verify
