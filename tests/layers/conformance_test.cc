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

// Feeds x in pieces of the given lengths, handing the state on.
LayerOutput in_pieces(Context& ctx, const Layer& layer, const Tensor& x, State state,
                      const std::vector<std::int64_t>& lengths) {
  const Tensor y = Tensor::full(x.shape(), kNaN, x.dtype());
  std::int64_t start = 0;
  for (const std::int64_t length : lengths) {
    LayerOutput piece = layer.forward(ctx, time_slice(x, start, length), std::move(state));
    time_slice(y, start, length).copy_from(piece.y.value());
    state = std::move(piece.state);
    start += length;
  }
  return {y, std::move(state)};
}

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

TEST_P(EveryMixer, ZeroStateEqualsNoState) {
  NoGrad constant;
  const auto layer = make(DType::F32);
  const Tensor x = random_input({2, 5, kWidth}, "x", DType::F32);
  const LayerOutput none = layer->forward(ctx, x);
  const LayerOutput zero = layer->forward(ctx, x, layer->zero_state(2));
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
  expect_same_bits(layer->forward(ctx, Tensor::empty({2, 0, kWidth})).state, layer->zero_state(2), "T = 0, no state");
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
  bool found = false;
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

// ------------------------------------------------------------------------------------------------- Field reports

// The outputs before a changed token keep their bits; those at and after it change.
TEST_P(EveryMixer, P12_TheFutureNeverChangesThePast) {
  NoGrad constant;
  const auto layer = make(DType::F32);
  const Tensor x = random_input({1, 512, kWidth}, "x", DType::F32);
  const Tensor y = layer->forward(ctx, x).y.value();
  for (const std::int64_t t : {1, 63, 64, 65, 400}) {
    const Tensor changed = x.clone();
    changed.data<float>()[t * kWidth + 2] += 1;
    const Tensor z = layer->forward(ctx, changed).y.value();
    expect_same_bits(time_slice(z, 0, t), time_slice(y, 0, t), "before token " + std::to_string(t));
    EXPECT_FALSE(time_slice(z, t, 1).same_bits(time_slice(y, t, 1))) << t;
    EXPECT_FALSE(time_slice(z, t + 1, 1).same_bits(time_slice(y, t + 1, 1))) << t;
  }
}

TEST_P(EveryMixer, P22_SeveralTokensContinueANonEmptyState) {
  NoGrad constant;
  const auto layer = make(DType::F32);
  for (const std::int64_t batch : {1, 3}) {
    const Tensor x = random_input({batch, 256, kWidth}, "x", DType::F32);
    const LayerOutput whole = layer->forward(ctx, x);
    const std::vector<std::vector<std::int64_t>> cuts = {
        {64, 64, 64, 64}, {1, 255}, {255, 1}, std::vector<std::int64_t>(256, 1), {1, 2, 3, 0, 100, 3, 147}};
    for (const auto& cut : cuts) {
      const LayerOutput pieces = in_pieces(ctx, *layer, x, {}, cut);
      expect_same_bits(pieces.y.value(), whole.y.value(), "y");
      expect_same_bits(pieces.state, whole.state, "state");
    }
  }
}

// Rows of lengths 5, 9, 1, 3 (and 0) in a batch padded to 9: left, right or with holes; pads are NaN or huge.
TEST_P(EveryMixer, P24_PaddingIsInert) {
  NoGrad constant;
  const auto layer = make(DType::F32);
  const std::vector<std::int64_t> lengths = {5, 9, 1, 3, 0};
  const auto B = static_cast<std::int64_t>(lengths.size());
  enum class Side { Left, Right, Interior };
  for (const Side side : {Side::Left, Side::Right, Side::Interior}) {
    for (const double pad : {kNaN, 1e4}) {
      const Tensor x = Tensor::full({B, 9, kWidth}, pad), mask = Tensor::zeros({B, 9}, DType::Bool);
      std::vector<std::vector<std::int64_t>> real(lengths.size());
      for (std::int64_t b = 0; b < B; ++b) {
        const std::int64_t n = lengths[static_cast<std::size_t>(b)];
        const Tensor tokens = random_input({1, n, kWidth}, std::to_string(b), DType::F32);
        for (std::int64_t i = 0; i < n; ++i) {
          const std::int64_t t = side == Side::Left ? 9 - n + i : side == Side::Right ? i : i * 9 / n;
          real[static_cast<std::size_t>(b)].push_back(t);
          mask.data<bool>()[b * 9 + t] = true;
          x.slice(0, b, 1).slice(1, t, 1).copy_from(time_slice(tokens, i, 1));
        }
      }
      const LayerOutput padded = layer->forward(ctx, x, random_state(*layer, B), {{}, mask});
      const LayerOutput next = layer->forward(ctx, random_input({B, 8, kWidth}, "next", DType::F32), padded.state);
      for (std::int64_t b = 0; b < B; ++b) {
        const auto& where = real[static_cast<std::size_t>(b)];
        const auto n = static_cast<std::int64_t>(where.size());
        const std::string what = "row " + std::to_string(b) + " side " + std::to_string(static_cast<int>(side));
        const LayerOutput alone = layer->forward(ctx, random_input({1, n, kWidth}, std::to_string(b), DType::F32),
                                                 one_sequence(random_state(*layer, B), b));
        const Tensor row = padded.y.value().slice(0, b, 1), expected = Tensor::zeros({1, 9, kWidth});
        for (std::int64_t i = 0; i < n; ++i) {
          time_slice(expected, where[static_cast<std::size_t>(i)], 1).copy_from(time_slice(alone.y.value(), i, 1));
        }
        expect_same_bits(row, expected, what);
        expect_same_bits(one_sequence(padded.state, b), alone.state, what);
        const Tensor after = random_input({B, 8, kWidth}, "next", DType::F32).slice(0, b, 1);
        expect_same_bits(next.y.value().slice(0, b, 1), layer->forward(ctx, after, alone.state).y.value(), what);
      }
      // A batch of one is masked like any other.
      const LayerOutput one =
          layer->forward(ctx, x.slice(0, 0, 1), one_sequence(random_state(*layer, B), 0), {{}, mask.slice(0, 0, 1)});
      expect_same_bits(one.y.value(), padded.y.value().slice(0, 0, 1), "batch of one");
    }
  }
}

TEST_P(EveryMixer, P25_PackedSequencesAreSeparate) {
  NoGrad constant;
  const auto layer = make(DType::F32);
  const Tensor x = random_input({1, 6, kWidth}, "x", DType::F32);
  const std::vector<std::int64_t> offsets = {0, 0, 3, 3, 6, 6};
  const State start = random_state(*layer, 5);
  const LayerOutput packed = layer->forward(ctx, x, start, {offsets, {}});
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const std::int64_t length = offsets[s + 1] - offsets[s];
    const LayerOutput alone =
        layer->forward(ctx, time_slice(x, offsets[s], length), one_sequence(start, static_cast<std::int64_t>(s)));
    const std::string what = "sequence " + std::to_string(s);
    expect_same_bits(time_slice(packed.y.value(), offsets[s], length), alone.y.value(), what);
    expect_same_bits(one_sequence(packed.state, static_cast<std::int64_t>(s)), alone.state, what);
  }
  // Borders rule beside a mask of ones; a mask with holes contradicts them.
  const Tensor ones = Tensor::full({1, 6}, 1, DType::Bool);
  const LayerOutput both = layer->forward(ctx, x, {}, {{0, 3, 6}, ones});
  const LayerOutput borders = layer->forward(ctx, x, {}, {{0, 3, 6}, {}});
  expect_same_bits(both.y.value(), borders.y.value(), "with a mask of ones");
  expect_same_bits(both.state, borders.state, "with a mask of ones");
  ones.data<bool>()[2] = false;
  EXPECT_THROW(layer->forward(ctx, x, {}, {{0, 3, 6}, ones}), Error);
  const std::vector<std::vector<std::int64_t>> wrong = {{0, 5}, {1, 6}, {0, 4, 2, 6}, {0, -1, 6}, {0, 7}, {0}};
  for (const auto& bad : wrong) EXPECT_THROW(layer->forward(ctx, x, {}, {bad, {}}), Error);
  const LayerOutput none = layer->forward(ctx, Tensor::empty({1, 0, kWidth}), {}, {{0}, {}});
  EXPECT_EQ(none.state[0].size(0), 0);
}

// Repeated runs, gradients included, give the same bits with any number of threads.
TEST_P(EveryMixer, P41_RunsDoNotDifferFromRunToRun) {
  const auto layer = make(DType::F32);
  const Tensor x = random_input({5, 37, kWidth}, "x", DType::F32);
  const Tensor cotangent = random_input({5, 37, kWidth}, "cotangent", DType::F32);
  std::vector<Tensor> first;
  for (const int threads : {1, 1, 2, 3, 8}) {
    Context parallel = Context::parallel(threads);
    const Variable leaf = Variable::leaf(x);
    const LayerOutput out = layer->forward(parallel, leaf);
    const Gradients gradients = backward(parallel, std::span(&out.y, 1), std::span(&cotangent, 1));
    std::vector<Tensor> all = {out.y.value(), gradients.of(leaf)};
    for (const layers::Parameter* parameter : layer->parameters()) all.push_back(gradients.of(parameter->value));
    if (first.empty()) first = all;
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_TRUE(all[i].defined());
      expect_same_bits(all[i], first[i], "tensor " + std::to_string(i) + ", " + std::to_string(threads) + " threads");
    }
  }
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

// An empty sequence hands its state's gradient straight through.
TEST_P(EveryMixer, P25_AnEmptySequencePassesTheStateGradientThrough) {
  const auto layer = make(DType::F64);
  State state;
  for (const State initial = random_state(*layer, 2); state.count() < initial.count();) {
    state.push(Variable::leaf(initial[state.count()].value()));
  }
  const LayerOutput out = layer->forward(ctx, random_input({1, 3, kWidth}, "x", DType::F64), state, {{0, 3, 3}, {}});
  std::vector<Variable> outputs;
  std::vector<Tensor> cotangents;
  for (int i = 0; i < state.count(); ++i) {
    outputs.push_back(out.state[i]);
    cotangents.push_back(random_input(out.state[i].shape(), "cotangent", DType::F64));
  }
  const Gradients gradients = backward(ctx, outputs, cotangents);
  for (int i = 0; i < state.count(); ++i) {
    expect_same_bits(gradients.of(state[i]).slice(0, 1, 1), cotangents[static_cast<std::size_t>(i)].slice(0, 1, 1),
                     std::string(layer->state_fields()[static_cast<std::size_t>(i)].name));
  }
}

}  // namespace
}  // namespace stepwell
