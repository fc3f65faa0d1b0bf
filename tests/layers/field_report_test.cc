// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// Field reports that concern every registered mixer.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/layers/mixer_case.h"

namespace stepwell {
namespace {

using layers::LayerOutput;
using layers::State;

constexpr std::int64_t kWidth = 6;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class FieldReport : public ::testing::TestWithParam<MixerCase> {
 protected:
  std::unique_ptr<layers::Layer> make(DType dtype) const { return make_mixer(GetParam(), kWidth, dtype); }
  Context ctx = Context::serial();
};

INSTANTIATE_TEST_SUITE_P(Registry, FieldReport, ::testing::ValuesIn(mixer_cases()));

// The outputs before a changed token keep their bits; those at and after it change.
TEST_P(FieldReport, P12_TheFutureNeverChangesThePast) {
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

// Lengths that are no multiple of anything, from a state: outputs, last state and every gradient in float as in double.
TEST_P(FieldReport, P14_RaggedLengths) {
  for (const std::int64_t time : {1, 2, 15, 16, 17, 63, 64, 65, 127, 129, 255, 257, 300, 1000}) {
    std::vector<std::pair<std::string, Tensor>> results[2];
    for (const DType dtype : {DType::F64, DType::F32}) {
      const auto layer = make(dtype);
      const auto input = [&](const Shape& shape, std::string_view name) {
        return random_input(shape, name, DType::F64).to(dtype).clone();
      };
      const Variable x = Variable::leaf(input({1, time, kWidth}, "x"));
      State start;
      for (const layers::StateField& field : layer->state_fields()) {
        const Tensor values = random_input(layer->zero_state(1)[start.count()].shape(), field.name, DType::F64);
        for (double& v : values.span<double>()) v = field.positive ? 0.5 + std::abs(v) : v;
        start.push(Variable::leaf(values.to(dtype).clone()));
      }
      const LayerOutput out = layer->forward(ctx, x, start);
      std::vector<Variable> outputs = {out.y};
      for (int i = 0; i < out.state.count(); ++i) outputs.push_back(out.state[i]);
      std::vector<Tensor> cotangents;
      for (const Variable& output : outputs) cotangents.push_back(input(output.shape(), "cotangent"));
      const Gradients gradients = backward(ctx, outputs, cotangents);
      auto& all = results[dtype == DType::F32];
      all = {{"y", out.y.value()}, {"gradient of x", gradients.of(x)}};
      for (int i = 0; i < start.count(); ++i) {
        all.emplace_back("state", out.state[i].value());
        all.emplace_back("gradient of the state", gradients.of(start[i]));
      }
      for (const layers::Parameter* p : layer->parameters()) all.emplace_back(p->name, gradients.of(p->value));
    }
    SCOPED_TRACE(time);
    // The gradients of the mLSTM's gate biases and of m are small differences of large terms (docs/xlstm.md): they are
    // held to a tenth of the largest gradient.
    const auto largest_of = [](const Tensor& t) {
      double largest = 0;
      for (std::int64_t i = 0; t.defined() && i < t.numel(); ++i) largest = std::max(largest, std::abs(t.at(i)));
      return largest;
    };
    double large = 0;
    for (const auto& [name, expected] : results[0]) large = std::max(large, largest_of(expected));
    for (std::size_t i = 0; i < results[0].size(); ++i) {
      const auto& [name, expected] = results[0][i];
      const double largest = largest_of(expected);
      const bool cancels = GetParam().row->name.starts_with("mlstm") && name != "y" && name != "state" && largest > 0;
      expect_close(results[1][i].second, expected, 2e-5 * (cancels ? std::max(1.0, 0.1 * large / largest) : 1), name);
    }
  }
}

TEST_P(FieldReport, P22_SeveralTokensContinueANonEmptyState) {
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
TEST_P(FieldReport, P24_PaddingIsInert) {
  NoGrad constant;
  const auto layer = make(DType::F32);
  const std::vector<std::int64_t> lengths = {5, 9, 1, 3, 0};
  const auto B = static_cast<std::int64_t>(lengths.size());
  enum class Side { Left, Right, Interior };
  for (const Side side : {Side::Left, Side::Right, Side::Interior}) {
    for (const double pad : {kNaN, 1e4, 0.0}) {  // 0: random
      const Tensor x = pad == 0 ? random_input({B, 9, kWidth}, "pads", DType::F32) : Tensor::full({B, 9, kWidth}, pad);
      const Tensor mask = Tensor::zeros({B, 9}, DType::Bool);
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

TEST_P(FieldReport, P25_PackedSequencesAreSeparate) {
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

// An empty sequence hands its state's gradient straight through.
TEST_P(FieldReport, P25_AnEmptySequencePassesTheStateGradientThrough) {
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

// Repeated runs, gradients included, give the same bits with any number of threads.
TEST_P(FieldReport, P41_RunsDoNotDifferFromRunToRun) {
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

}  // namespace
}  // namespace stepwell
