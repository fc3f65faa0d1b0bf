// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "verify/promises.h"

#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "stepwell/autograd/gradcheck.h"
#include "stepwell/simd/isa.h"

namespace stepwell::verify {

using layers::Layer;
using layers::LayerOutput;
using layers::Sequences;
using layers::State;

Tensor random_tensor(const Shape& shape, DType dtype, const char* name, double deviation) {
  return Rng(20260801).stream("verify").stream(name).normal(shape, 0, deviation, dtype);
}

State random_state(const Layer& layer, std::int64_t sequences, const char* name) {
  State state;
  const State zero = layer.zero_state(sequences);
  for (int i = 0; i < zero.count(); ++i) {
    const Tensor values = random_tensor(zero[i].shape(), DType::F64, fmt::format("{}.{}", name, i).c_str(), 0.5);
    const bool positive = layer.state_fields()[static_cast<std::size_t>(i)].positive;
    for (double& x : values.span<double>()) x = positive ? 0.5 + std::fabs(x) : x;
    state.push(values.to(layer.dtype()));
  }
  return state;
}

namespace {

constexpr std::int64_t kBatch = 3, kTime = 67;

// A copy that shares nothing, so that a run may not change what another run reads.
State copy(const State& state) {
  State result;
  for (int i = 0; i < state.count(); ++i) result.push(state[i].value().clone());
  return result;
}

State rows_of_state(const State& state, std::int64_t first, std::int64_t count) {
  State result;
  for (int i = 0; i < state.count(); ++i) result.push(state[i].value().slice(0, first, count).clone());
  return result;
}

LayerOutput run(const Layer& layer, Context& ctx, const Tensor& x, const State& state,
                const Sequences& sequences = {}) {
  NoGrad no_grad;
  return layer.forward(ctx, x, copy(state), sequences);
}

void same_output(const LayerOutput& got, const LayerOutput& expected, const std::string& what, Tally& tally) {
  tally.same_bits(got.y.value(), expected.y.value(), what + " y");
  for (int i = 0; i < expected.state.count(); ++i) {
    tally.same_bits(got.state[i].value(), expected.state[i].value(), fmt::format("{} state {}", what, i));
  }
}

Tensor time_slice(const Tensor& x, std::int64_t begin, std::int64_t length) {
  return x.slice(1, begin, length).clone();
}

// Feeds x in pieces of the given lengths, the state carried; the outputs joined.
LayerOutput run_in_pieces(const Layer& layer, Context& ctx, const Tensor& x, const State& state,
                          std::span<const std::int64_t> lengths) {
  NoGrad no_grad;
  Tensor y;
  State carried = copy(state);
  std::int64_t at = 0;
  for (const std::int64_t length : lengths) {
    LayerOutput piece = layer.forward(ctx, time_slice(x, at, length), std::move(carried));
    if (!y) y = Tensor::empty({x.size(0), x.size(1), piece.y.size(-1)}, x.dtype());
    y.slice(1, at, length).copy_from(piece.y.value());
    carried = std::move(piece.state);
    at += length;
  }
  return {y, std::move(carried)};
}

void measure_splits(Subject& subject, const Options&, Tally& tally) {
  Context ctx = Context::serial();
  const Layer& layer = *subject.layer;
  const Tensor x = random_tensor({kBatch, kTime, layer.width()}, DType::F32, "x");
  for (const bool zero : {true, false}) {
    const State state = zero ? layer.zero_state(kBatch) : random_state(layer, kBatch, "state");
    const LayerOutput whole = run(layer, ctx, x, state);
    const std::vector<std::int64_t> steps(kTime, 1);
    const std::vector<std::vector<std::int64_t>> cuts = {
        steps, {1, kTime - 1}, {kTime - 1, 1}, {0, 2, 3, 0, 16, 1, kTime - 22, 0}, {64, kTime - 64}, {31, 33, 3}};
    for (const auto& lengths : cuts) {
      same_output(run_in_pieces(layer, ctx, x, state, lengths), whole,
                  fmt::format("{}: {} pieces", subject.variant, lengths.size()), tally);
    }
  }
}

void measure_batch(Subject& subject, const Options&, Tally& tally) {
  Context ctx = Context::serial();
  const Layer& layer = *subject.layer;
  constexpr std::int64_t kRows = 8, kTokens = 19;
  const Tensor x = random_tensor({kRows, kTokens, layer.width()}, DType::F32, "x");
  const State state = random_state(layer, kRows, "state");
  const LayerOutput all = run(layer, ctx, x, state);
  for (std::int64_t first = 0; first < kRows; ++first) {
    for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{3}}) {
      if (first + rows > kRows) continue;
      const LayerOutput part = run(layer, ctx, x.slice(0, first, rows).clone(), rows_of_state(state, first, rows));
      const LayerOutput expected{all.y.value().slice(0, first, rows), rows_of_state(all.state, first, rows)};
      same_output(part, expected, fmt::format("{}: rows {}…{}", subject.variant, first, first + rows - 1), tally);
    }
  }
}

void measure_threads(Subject& subject, const Options&, Tally& tally) {
  const Layer& layer = *subject.layer;
  const Tensor x = random_tensor({kBatch, kTime, layer.width()}, DType::F32, "x");
  const State state = random_state(layer, kBatch, "state");
  Context serial = Context::serial();
  const LayerOutput expected = run(layer, serial, x, state);
  for (const int threads : {2, 3, 4, 7}) {
    Context ctx = Context::parallel(threads);
    same_output(run(layer, ctx, x, state), expected, fmt::format("{}: {} threads", subject.variant, threads), tally);
  }
}

// Packed sequences, an empty one among them, and padded ones equal separate runs.
void measure_sequences(Subject& subject, const Options&, Tally& tally) {
  Context ctx = Context::serial();
  const Layer& layer = *subject.layer;
  const std::vector<std::int64_t> offsets = {0, 5, 5, 6, 23};
  const std::int64_t count = static_cast<std::int64_t>(offsets.size()) - 1, tokens = offsets.back();
  const Tensor x = random_tensor({1, tokens, layer.width()}, DType::F32, "x");
  const State state = random_state(layer, count, "state");
  const LayerOutput packed = run(layer, ctx, x, state, {.cu_seqlens = offsets, .mask = {}});
  for (std::int64_t s = 0; s < count; ++s) {
    const std::int64_t length = offsets[s + 1] - offsets[s];
    const LayerOutput alone = run(layer, ctx, time_slice(x, offsets[s], length), rows_of_state(state, s, 1));
    const LayerOutput expected{time_slice(packed.y.value(), offsets[s], length), rows_of_state(packed.state, s, 1)};
    same_output(alone, expected, fmt::format("{}: packed sequence {}", subject.variant, s), tally);
  }

  constexpr std::int64_t kLonger = 9;
  const std::array<std::int64_t, 4> lengths = {5, 9, 1, 3};
  for (const bool left : {true, false}) {
    const auto rows = static_cast<std::int64_t>(lengths.size());
    const Tensor padded = Tensor::full({rows, kLonger, layer.width()}, std::numeric_limits<double>::quiet_NaN());
    const Tensor mask = Tensor::zeros({rows, kLonger}, DType::Bool);
    const State start = random_state(layer, rows, "padded");
    for (std::int64_t b = 0; b < rows; ++b) {
      const std::int64_t at = left ? kLonger - lengths[b] : 0;
      padded.slice(0, b, 1).slice(1, at, lengths[b]).copy_from(time_slice(x, 2 * b, lengths[b]));
      mask.slice(0, b, 1).slice(1, at, lengths[b]).fill(1);
    }
    const LayerOutput all = run(layer, ctx, padded, start, {.cu_seqlens = {}, .mask = mask});
    for (std::int64_t b = 0; b < rows; ++b) {
      const std::int64_t at = left ? kLonger - lengths[b] : 0;
      const LayerOutput alone = run(layer, ctx, time_slice(x, 2 * b, lengths[b]), rows_of_state(start, b, 1));
      const LayerOutput expected{all.y.value().slice(0, b, 1).slice(1, at, lengths[b]).clone(),
                                 rows_of_state(all.state, b, 1)};
      same_output(alone, expected, fmt::format("{}: row {} padded {}", subject.variant, b, left ? "left" : "right"),
                  tally);
    }
  }
}

void measure_causality(Subject& subject, const Options&, Tally& tally) {
  Context ctx = Context::serial();
  const Layer& layer = *subject.layer;
  const Tensor x = random_tensor({1, kTime, layer.width()}, DType::F32, "x");
  const State state = random_state(layer, 1, "state");
  const LayerOutput before = run(layer, ctx, x, state);
  for (const std::int64_t at : {std::int64_t{1}, std::int64_t{31}, std::int64_t{63}, std::int64_t{64}, kTime - 1}) {
    for (const double value : {3.0, std::numeric_limits<double>::quiet_NaN()}) {
      const Tensor changed = x.clone();
      changed.slice(1, at, 1).fill(value);
      const LayerOutput after = run(layer, ctx, changed, state);
      const std::string what = fmt::format("{}: token {} set to {}", subject.variant, at, value);
      tally.same_bits(time_slice(after.y.value(), 0, at), time_slice(before.y.value(), 0, at), what);
      tally.require(!time_slice(after.y.value(), at, 1).same_bits(time_slice(before.y.value(), at, 1)),
                    what + " changes nothing at that token");
    }
  }
}

// The leaves of one run, and what arrives at them.
struct Gradient {
  std::vector<std::string> names;
  std::vector<Tensor> values;
};

Gradient gradient(Layer& layer, Context& ctx, const Tensor& x, const State& state) {
  const Variable input = Variable::leaf(x);
  State start;
  for (int i = 0; i < state.count(); ++i) start.push(Variable::leaf(state[i].value()));
  LayerOutput out = layer.forward(ctx, input, start);
  std::vector<Variable> outputs = {out.y};
  for (int i = 0; i < out.state.count(); ++i) outputs.push_back(out.state[i]);
  std::vector<Tensor> cotangents;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    cotangents.push_back(random_tensor(outputs[i].shape(), outputs[i].dtype(), fmt::format("cotangent {}", i).c_str()));
  }
  const Gradients gradients = backward(ctx, outputs, cotangents);
  Gradient result;
  auto keep = [&](std::string name, const Variable& leaf) {
    const Tensor g = gradients.of(leaf);
    result.names.push_back(std::move(name));
    result.values.push_back(g ? g : Tensor::zeros(leaf.shape(), leaf.dtype()));
  };
  keep("x", input);
  const auto fields = layer.state_fields();
  for (int i = 0; i < start.count(); ++i) keep(std::string(fields[static_cast<std::size_t>(i)].name), start[i]);
  for (const layers::Parameter* p : std::as_const(layer).parameters()) keep(p->name, p->value);
  return result;
}

void measure_repeatable_gradients(Subject& subject, const Options&, Tally& tally) {
  Layer& layer = *subject.layer;
  const Tensor x = random_tensor({kBatch, kTime, layer.width()}, DType::F32, "x");
  const State state = random_state(layer, kBatch, "state");
  Context serial = Context::serial(Mode::Fast);
  const Gradient expected = gradient(layer, serial, x, state);
  for (const int threads : {1, 2, 4}) {
    Context ctx = Context::parallel(threads, Mode::Fast);
    const Gradient again = gradient(layer, ctx, x, state);
    for (std::size_t i = 0; i < expected.names.size(); ++i) {
      tally.same_bits(again.values[i], expected.values[i],
                      fmt::format("{}: {} with {} threads", subject.variant, expected.names[i], threads));
    }
  }
}

void measure_instruction_sets(Subject& subject, const Options&, Tally& tally) {
  const simd::Isa before = simd::current_isa();
  const Layer& layer = *subject.layer;
  const Tensor x = random_tensor({2, kTime, layer.width()}, DType::F32, "x");
  const State state = random_state(layer, 2, "state");
  Context ctx = Context::serial();
  simd::set_isa(simd::Isa::Scalar);
  const LayerOutput expected = run(layer, ctx, x, state);
  for (const simd::Isa isa : simd::supported_isas()) {
    if (isa == simd::Isa::Scalar || !simd::has_fma(isa)) continue;
    simd::set_isa(isa);
    same_output(run(layer, ctx, x, state), expected,
                fmt::format("{}: {} against scalar", subject.variant, simd::isa_name(isa)), tally);
  }
  simd::set_isa(before);
  tally.not_run("this processor has no vector instruction set with fused multiply-add");
}

// Converts a layer to double for its lifetime; back is exact.
class InDouble {
 public:
  explicit InDouble(Layer& layer) : layer_(layer) { layer_.to(DType::F64); }
  ~InDouble() { layer_.to(DType::F32); }
  InDouble(const InDouble&) = delete;
  InDouble& operator=(const InDouble&) = delete;

 private:
  Layer& layer_;
};

State to_double(const State& state) {
  State result;
  for (int i = 0; i < state.count(); ++i) result.push(state[i].value().to(DType::F64));
  return result;
}

void close_output(const LayerOutput& got, const LayerOutput& expected, double relative, const std::string& what,
                  Tally& tally) {
  tally.within(got.y.value(), expected.y.value(), relative, 0, what + " y");
  for (int i = 0; i < expected.state.count(); ++i) {
    tally.within(got.state[i].value(), expected.state[i].value(), relative, 0, fmt::format("{} state {}", what, i));
  }
}

// Every form against the reference in double: the op's scalar recurrence, or for a layer its own double form.
void measure_reference(Subject& subject, const Options&, Tally& tally) {
  Layer& layer = *subject.layer;
  Context ctx = Context::serial();
  for (const std::int64_t time : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5}, kTime}) {
    const Tensor x = random_tensor({kBatch, time, layer.width()}, DType::F32, "x");
    const State state = random_state(layer, kBatch, "state");
    const LayerOutput single = run(layer, ctx, x, state);
    InDouble scope(layer);
    const Tensor x64 = x.to(DType::F64);
    const State state64 = to_double(state);
    const LayerOutput fast64 = run(layer, ctx, x64, state64);
    const std::string what = fmt::format("{}: T={}", subject.variant, time);
    if (!subject.reference) {
      close_output(single, fast64, kRelativeF32, what + " f32", tally);
      continue;
    }
    LayerOutput plain =
        subject.reference(x64.reshape({kBatch * time, layer.width()}), copy(state64), Segments::uniform(kBatch, time));
    plain.y = plain.y.value().reshape(fast64.y.shape());
    close_output(fast64, plain, kRelativeF64, what + " f64", tally);
    close_output(single, plain, kRelativeF32, what + " f32", tally);
  }
}

void measure_finite_differences(Subject& subject, const Options&, Tally& tally) {
  Layer& layer = *subject.layer;
  InDouble scope(layer);
  Context ctx = Context::serial(Mode::Fast);
  for (const std::int64_t time : {std::int64_t{1}, std::int64_t{5}}) {
    constexpr std::int64_t kRows = 2, kElements = 12;
    std::vector<GradcheckInput> inputs = {{"x", random_tensor({kRows, time, layer.width()}, DType::F64, "x"), 0}};
    const State state = random_state(layer, kRows, "state");
    const auto fields = layer.state_fields();
    for (int i = 0; i < state.count(); ++i) {
      inputs.push_back({std::string(fields[static_cast<std::size_t>(i)].name), state[i].value(), 0});
    }
    const auto parameters = layer.parameters();
    std::vector<Variable> before;
    for (layers::Parameter* p : parameters) {
      inputs.push_back({p->name, p->value.value(), 0});
      before.push_back(p->value);
    }
    const auto fields_count = static_cast<std::size_t>(state.count());
    const auto result = gradcheck(
        ctx,
        [&](const std::vector<Variable>& v) {
          State start;
          for (std::size_t i = 1; i <= fields_count; ++i) start.push(v[i]);
          for (std::size_t i = 0; i < parameters.size(); ++i) {
            parameters[i]->value = v[1 + fields_count + i];
          }
          LayerOutput out = layer.forward(ctx, v[0], std::move(start));
          std::vector<Variable> outputs = {out.y};
          for (int i = 0; i < out.state.count(); ++i) outputs.push_back(out.state[i]);
          return outputs;
        },
        inputs, kElements);
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i]->value = before[i];
    tally.bounded(result.worst, 1, result.checked,
                  fmt::format("{}: T={} {}[{}]", subject.variant, time, result.worst_input, result.worst_index));
    if (!result.passed) tally.require(false, fmt::format("{}: T={} {}", subject.variant, time, result.to_string()));
  }
}

// The gradient through two segments, the state handed over, equals that of one run.
void measure_carried_gradients(Subject& subject, const Options&, Tally& tally) {
  Layer& layer = *subject.layer;
  InDouble scope(layer);
  Context ctx = Context::serial(Mode::Fast);
  constexpr std::int64_t kRows = 2, kTokens = 11, kCut = 4;
  const Tensor x = random_tensor({kRows, kTokens, layer.width()}, DType::F64, "x");
  const State state = random_state(layer, kRows, "state");

  auto gradients_of = [&](bool cut) {
    State start;
    for (int i = 0; i < state.count(); ++i) start.push(Variable::leaf(state[i].value()));
    std::vector<Variable> outputs;
    std::vector<Tensor> cotangents;
    State carried = start;
    std::int64_t at = 0;
    for (const std::int64_t length :
         cut ? std::vector<std::int64_t>{kCut, kTokens - kCut} : std::vector<std::int64_t>{kTokens}) {
      LayerOutput piece = layer.forward(ctx, time_slice(x, at, length), carried);
      outputs.push_back(piece.y);
      cotangents.push_back(
          random_tensor({kRows, kTokens, piece.y.size(-1)}, DType::F64, "cotangent").slice(1, at, length).clone());
      carried = piece.state;
      at += length;
    }
    for (int i = 0; i < carried.count(); ++i) {
      outputs.push_back(carried[i]);
      cotangents.push_back(random_tensor(carried[i].shape(), DType::F64, "last state"));
    }
    const Gradients gradients = backward(ctx, outputs, cotangents);
    Gradient result;
    for (int i = 0; i < start.count(); ++i) {
      result.names.push_back(fmt::format("state {}", i));
      result.values.push_back(gradients.of(start[i]));
    }
    for (const layers::Parameter* p : std::as_const(layer).parameters()) {
      result.names.push_back(p->name);
      result.values.push_back(gradients.of(p->value));
    }
    return result;
  };
  const Gradient one = gradients_of(false), two = gradients_of(true);
  for (std::size_t i = 0; i < one.names.size(); ++i) {
    const std::string what = fmt::format("{}: {}", subject.variant, one.names[i]);
    if (!one.values[i].defined() || !two.values[i].defined()) {
      // A parameter may be idle in some configuration; a state never is.
      const bool idle =
          i >= static_cast<std::size_t>(state.count()) && !one.values[i].defined() && !two.values[i].defined();
      if (!idle) tally.require(false, what + " gets no gradient");
      continue;
    }
    tally.within(two.values[i], one.values[i], 1e-10, 0, what);
  }
}

}  // namespace

std::span<const Promise> promises() {
  static constexpr Promise kPromises[] = {
      {"X1 splits", measure_splits, false},
      {"X1 batch", measure_batch, false},
      {"X1 threads", measure_threads, false},
      {"X1 packed and padded", measure_sequences, false},
      {"X2 causal", measure_causality, false},
      {"X3 repeatable gradients", measure_repeatable_gradients, false},
      {"X5 save and load", measure_save_and_load, true},
      {"X6 no heap in a step", measure_allocations, true},
      {"X7 instruction sets", measure_instruction_sets, false},
      {"form = reference", measure_reference, false},
      {"finite differences", measure_finite_differences, false},
      {"gradient through state", measure_carried_gradients, false},
  };
  return kPromises;
}

}  // namespace stepwell::verify
