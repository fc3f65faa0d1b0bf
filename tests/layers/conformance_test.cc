// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// What every registered mixer promises, whatever it computes.
#include <cmath>
#include <limits>
#include <numeric>

#include "stepwell/autograd/gradcheck.h"
#include "stepwell/simd/isa.h"

#include "tests/layers/mixer_case.h"

namespace stepwell {
namespace {

using layers::Layer;
using layers::LayerOutput;
using layers::Sequences;
using layers::State;

constexpr std::int64_t kWidth = 6;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class EveryMixer : public ::testing::TestWithParam<MixerCase> {
 protected:
  std::unique_ptr<Layer> make(DType dtype) const { return make_mixer(GetParam(), kWidth, dtype); }
  Context ctx = Context::serial();
};

INSTANTIATE_TEST_SUITE_P(Registry, EveryMixer, ::testing::ValuesIn(mixer_cases()));

// The shapes that make the difference: every cut of 12 tokens, steps, empty pieces, with and without a state.
TEST_P(EveryMixer, SplitsInTimeKeepEveryBit) {
  NoGrad constant;
  for (const DType dtype : {DType::F32, DType::F64}) {
    const auto layer = make(dtype);
    const Tensor x = random_input({3, 12, kWidth}, "x", dtype);
    for (const State& start : {State(), random_state(*layer, 3)}) {
      const LayerOutput whole = layer->forward(ctx, x, start);
      std::vector<std::vector<std::int64_t>> cuts = {std::vector<std::int64_t>(12, 1), {2, 0, 1, 5, 0, 3, 1}};
      for (std::int64_t k = 0; k <= 12; ++k) cuts.push_back({k, 12 - k});
      for (const auto& cut : cuts) {
        const LayerOutput pieces = in_pieces(ctx, *layer, x, start, cut);
        expect_same_bits(pieces.y.value(), whole.y.value(), "y cut at " + std::to_string(cut[0]));
        expect_same_bits(pieces.state, whole.state, "cut at " + std::to_string(cut[0]));
      }
    }
  }
}

TEST_P(EveryMixer, BatchAndThreadsKeepEveryBit) {
  NoGrad constant;
  const auto layer = make(DType::F32);
  const Tensor x = random_input({8, 33, kWidth}, "x", DType::F32);
  const State start = random_state(*layer, 8);
  const LayerOutput whole = layer->forward(ctx, x, start);
  for (const int threads : {2, 3, 4, 7}) {
    Context parallel = Context::parallel(threads);
    const LayerOutput out = layer->forward(parallel, x, start);
    expect_same_bits(out.y.value(), whole.y.value(), std::to_string(threads) + " threads");
    expect_same_bits(out.state, whole.state, std::to_string(threads) + " threads");
  }
  for (std::int64_t b = 0; b < 8; ++b) {
    const LayerOutput one = layer->forward(ctx, x.slice(0, b, 1), one_sequence(start, b));
    expect_same_bits(one.y.value(), whole.y.value().slice(0, b, 1), "row " + std::to_string(b));
    expect_same_bits(one.state, one_sequence(whole.state, b), "row " + std::to_string(b));
  }
}

TEST_P(EveryMixer, InstructionSetsKeepEveryBit) {
  NoGrad constant;
  const auto best = simd::current_isa();
  for (const DType dtype : {DType::F32, DType::F64}) {
    const auto layer = make(dtype);
    const Tensor x = random_input({2, 19, kWidth}, "x", dtype);
    const LayerOutput expected = layer->forward(ctx, x, random_state(*layer, 2));
    for (const simd::Isa isa : simd::supported_isas()) {
      if (!simd::has_fma(isa)) continue;
      simd::set_isa(isa);
      const LayerOutput out = layer->forward(ctx, x, random_state(*layer, 2));
      expect_same_bits(out.y.value(), expected.y.value(), std::string(simd::isa_name(isa)));
      expect_same_bits(out.state, expected.state, std::string(simd::isa_name(isa)));
    }
    simd::set_isa(best);
  }
}

TEST_P(EveryMixer, PreparedWeightsKeepEveryBit) {
  NoGrad constant;
  const auto layer = make(DType::F32);
  const Tensor x = random_input({2, 9, kWidth}, "x", DType::F32);
  const LayerOutput before = layer->forward(ctx, x);
  layer->prepare(ctx);
  const LayerOutput after = layer->forward(ctx, x);
  expect_same_bits(after.y.value(), before.y.value(), "y");
  expect_same_bits(after.state, before.state, "state");
  for (layers::Parameter* parameter : layer->parameters()) {
    const Tensor other = random_input(parameter->value.shape(), "other", DType::F32);
    parameter->set(other);
  }
  const LayerOutput replaced = layer->forward(ctx, x);
  layer->prepare(ctx);
  expect_same_bits(layer->forward(ctx, x).y.value(), replaced.y.value(), "after set()");
}

// A step must not allocate: the state's memory goes round.
TEST_P(EveryMixer, AStateMovedInIsUpdatedInPlace) {
  NoGrad constant;
  const auto layer = make(DType::F32);
  State state = random_state(*layer, 2);
  std::vector<void*> memory;
  for (int i = 0; i < state.count(); ++i) memory.push_back(state[i].value().raw());
  const State kept = random_state(*layer, 2);
  State copy;
  for (int i = 0; i < kept.count(); ++i) copy.push(kept[i].value().clone());
  for (const std::int64_t time : {1, 5, 0}) {
    LayerOutput out = layer->forward(ctx, random_input({2, time, kWidth}, "x", DType::F32), std::move(state));
    state = std::move(out.state);
    for (int i = 0; i < state.count(); ++i) EXPECT_EQ(state[i].value().raw(), memory[static_cast<std::size_t>(i)]);
    layer->forward(ctx, random_input({2, time, kWidth}, "x", DType::F32), kept);
    expect_same_bits(kept, copy, "a state somebody else holds");
  }
}

TEST_P(EveryMixer, InitialStateEqualsNoState) {
  NoGrad constant;
  const auto layer = make(DType::F32);
  const Tensor x = random_input({2, 5, kWidth}, "x", DType::F32);
  const LayerOutput none = layer->forward(ctx, x);
  const LayerOutput zero = layer->forward(ctx, x, layer->initial_state(ctx, 2));
  expect_same_bits(none.y.value(), zero.y.value(), "y");
  expect_same_bits(none.state, zero.state, "state");
  // A call without a state remembers nothing.
  expect_same_bits(layer->forward(ctx, x).y.value(), none.y.value(), "again");
}

TEST_P(EveryMixer, EmptyInputsGiveEmptyOutputsAndTheSameState) {
  NoGrad constant;
  const auto layer = make(DType::F32);
  const State start = random_state(*layer, 2);
  const LayerOutput none = layer->forward(ctx, Tensor::empty({2, 0, kWidth}), start);
  EXPECT_EQ(none.y.shape(), Shape({2, 0, kWidth}));
  expect_same_bits(none.state, start, "T = 0");
  const State kept = layer->forward(ctx, Tensor::empty({2, 0, kWidth})).state;
  expect_same_bits(kept, layer->initial_state(ctx, 2), "T = 0, no state");
  const LayerOutput nobody = layer->forward(ctx, Tensor::empty({0, 4, kWidth}));
  EXPECT_EQ(nobody.y.shape(), Shape({0, 4, kWidth}));
  EXPECT_EQ(nobody.state[0].size(0), 0);
}

TEST_P(EveryMixer, ExchangedStatesComeBack) {
  NoGrad constant;
  const auto layer = make(DType::F32);
  const State state = random_state(*layer, 3);
  expect_same_bits(layer->import_state(ctx, layer->export_state(ctx, state)), state, "import(export)");
  EXPECT_THROW(layer->export_state(ctx, State()), Error);
  EXPECT_THROW(layer->import_state(ctx, {}), Error);
}

TEST_P(EveryMixer, ConfigMakesTheSameLayerAgain) {
  const auto layer = make(DType::F32);
  const auto again = GetParam().row->make(kWidth, layer->config(), Rng(7));
  EXPECT_EQ(again->config(), layer->config());
  EXPECT_EQ(layer->type(), GetParam().row->name);
  const auto a = layer->named_parameters(), b = again->named_parameters();
  ASSERT_EQ(a.size(), b.size());
  bool found = GetParam().row->output_weight.empty();
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    expect_same_bits(a[i].second, b[i].second, a[i].first);
    found = found || a[i].first == GetParam().row->output_weight;
  }
  EXPECT_TRUE(found) << "the row's output_weight names no parameter";
  Config unknown = layer->config();
  unknown.set("d_stat", 4);
  EXPECT_THROW(GetParam().row->make(kWidth, unknown, Rng(7)), Error);
}

TEST_P(EveryMixer, WrongShapesAreErrors) {
  const auto layer = make(DType::F32);
  EXPECT_THROW(layer->forward(ctx, Tensor::zeros({4, kWidth})), Error);
  EXPECT_THROW(layer->forward(ctx, Tensor::zeros({1, 4, kWidth + 1})), Error);
  EXPECT_THROW(layer->forward(ctx, Tensor::zeros({1, 4, kWidth}, DType::F64)), Error);
  const Tensor x = Tensor::zeros({2, 4, kWidth});
  EXPECT_THROW(layer->forward(ctx, x, layer->zero_state(3)), Error);
  State half = layer->zero_state(2);
  half.push(Tensor::zeros({2}));
  EXPECT_THROW(layer->forward(ctx, x, half), Error);
  EXPECT_THROW(layer->forward(ctx, x, {}, {{}, Tensor::zeros({2, 3}, DType::Bool)}), Error);
  EXPECT_THROW(layer->forward(ctx, x, {}, {{}, Tensor::zeros({2, 4})}), Error);
  EXPECT_THROW(layer->forward(ctx, x, {}, {{0, 4}, {}}), Error) << "packed sequences need a batch of one";
}

// NaN in one sequence leaves the others alone, gradients included.
TEST_P(EveryMixer, SequencesOfABatchDoNotTouch) {
  const auto layer = make(DType::F32);
  const Tensor x = random_input({3, 7, kWidth}, "x", DType::F32), spoilt = x.clone();
  spoilt.slice(0, 1, 1).fill(kNaN);
  const Tensor y = layer->forward(ctx, x).y.value(), z = layer->forward(ctx, spoilt).y.value();
  for (const std::int64_t b : {0, 2}) expect_same_bits(z.slice(0, b, 1), y.slice(0, b, 1), "row " + std::to_string(b));
  EXPECT_TRUE(std::isnan(z.slice(0, 1, 1).at(0)));
}

// ------------------------------------------------------------------------------------------------------ Gradients

// x, the state's fields and every parameter as gradcheck inputs, and the layer as a function of them.
struct Checked {
  std::vector<GradcheckInput> inputs;
  std::function<std::vector<Variable>(const std::vector<Variable>&)> f;
};

Checked checked(Context& ctx, Layer& layer, const Tensor& x, const Sequences& sequences, std::int64_t count) {
  Checked c;
  c.inputs.push_back({"x", x});
  const State state = random_state(layer, count);
  for (int i = 0; i < state.count(); ++i) {
    c.inputs.push_back({std::string(layer.state_fields()[static_cast<std::size_t>(i)].name), state[i].value()});
  }
  for (const auto& [name, tensor] : layer.named_parameters()) c.inputs.push_back({name, tensor});
  c.f = [&ctx, &layer, sequences, fields = state.count()](const std::vector<Variable>& in) {
    State start;
    for (int i = 0; i < fields; ++i) start.push(in[static_cast<std::size_t>(i) + 1]);
    std::size_t next = static_cast<std::size_t>(fields) + 1;
    for (layers::Parameter* parameter : layer.parameters()) parameter->value = in[next++];
    LayerOutput out = layer.forward(ctx, in[0], std::move(start), sequences);
    std::vector<Variable> outputs = {out.y};
    for (Variable& field : layer.export_state(ctx, out.state)) outputs.push_back(std::move(field));
    return outputs;
  };
  return c;
}

TEST_P(EveryMixer, GradientsEqualFiniteDifferences) {
  for (const std::int64_t time : {1, 2, 5, 9}) {
    const auto layer = make(DType::F64);
    const Checked c = checked(ctx, *layer, random_input({2, time, kWidth}, "x", DType::F64), {}, 2);
    const GradcheckResult result = gradcheck(ctx, c.f, c.inputs, 80);
    EXPECT_TRUE(result.passed) << "T = " << time << ": " << result.to_string();
  }
}

TEST_P(EveryMixer, GradientsOfPackedAndPaddedSequencesEqualFiniteDifferences) {
  const Tensor mask = Tensor::full({2, 5}, 1, DType::Bool);
  for (const std::int64_t i : {0, 3, 9}) mask.data<bool>()[i] = false;
  const auto layer = make(DType::F64);
  Checked c = checked(ctx, *layer, random_input({2, 5, kWidth}, "x", DType::F64), {{}, mask}, 2);
  GradcheckResult result = gradcheck(ctx, c.f, c.inputs, 30);
  EXPECT_TRUE(result.passed) << "padded: " << result.to_string();
  c = checked(ctx, *layer, random_input({1, 8, kWidth}, "x", DType::F64), {{0, 3, 3, 8}, {}}, 3);
  result = gradcheck(ctx, c.f, c.inputs, 30);
  EXPECT_TRUE(result.passed) << "packed: " << result.to_string();
}

// The gradient through a state handed from call to call is that of one run.
TEST_P(EveryMixer, GradientsFlowThroughStates) {
  const auto layer = make(DType::F64);
  const Tensor x = random_input({2, 9, kWidth}, "x", DType::F64);
  const Tensor cotangent = random_input({2, 9, kWidth}, "cotangent", DType::F64);
  const auto gradients_of = [&](const std::vector<std::int64_t>& lengths) {
    const Variable leaf = Variable::leaf(x);
    State state, start;
    for (const State initial = random_state(*layer, 2); state.count() < initial.count();) {
      state.push(Variable::leaf(initial[state.count()].value()));
    }
    start = state;
    std::vector<Variable> outputs;
    std::vector<Tensor> cotangents;
    // Pieces of the leaf along time: rows of its transpose.
    const Variable by_time = transpose_last2(ctx, reshape(ctx, leaf, {2, 9, kWidth}));
    std::int64_t done = 0;
    for (const std::int64_t length : lengths) {
      const std::int64_t widths[] = {done, length, 9 - done - length};
      const Variable piece = transpose_last2(ctx, split(ctx, by_time, widths)[1]);
      LayerOutput out = layer->forward(ctx, piece, std::move(state));
      outputs.push_back(out.y);
      cotangents.push_back(time_slice(cotangent, done, length));
      state = std::move(out.state);
      done += length;
    }
    const Gradients gradients = backward(ctx, outputs, cotangents);
    std::vector<std::pair<std::string, Tensor>> all = {{"x", gradients.of(leaf)}};
    for (int i = 0; i < start.count(); ++i) all.emplace_back("state", gradients.of(start[i]));
    for (const layers::Parameter* p : layer->parameters()) all.emplace_back(p->name, gradients.of(p->value));
    return all;
  };
  const auto whole = gradients_of({9});
  for (const std::vector<std::int64_t>& lengths :
       {std::vector<std::int64_t>{4, 5}, {1, 8}, std::vector<std::int64_t>(9, 1)}) {
    const auto pieces = gradients_of(lengths);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      expect_close(pieces[i].second, whole[i].second, 1e-11, whole[i].first);
    }
  }
}

}  // namespace
}  // namespace stepwell
