// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include "ops/mlstm/reference.h"
#include "tests/autograd/carried_state.h"

namespace stepwell {
namespace {

// Columns of x: q [H·K], k [H·K], v [H·V], i [H], f [H].
struct Cell {
  std::int64_t H = 2, K = 3, V = 5;
  ops::InputGate input_gate = ops::InputGate::Exponential;
  bool normalise = true;
  double eps = 1e-6;

  std::int64_t width() const { return H * (2 * K + V + 2); }
  MlstmArguments arguments(Context& ctx, const Variable& x) const {
    const std::int64_t widths[] = {H * K, H * K, H * V, H, H};
    const Variables part = split(ctx, x, widths);
    const auto heads = [&](const Variable& v, std::int64_t n) { return reshape(ctx, v, {x.size(0), H, n}); };
    MlstmArguments in;
    in.q = heads(part[0], K);
    in.k = heads(part[1], K);
    in.v = heads(part[2], V);
    in.i = part[3];
    in.f = part[4];
    in.scale = 0.7;
    in.input_gate = input_gate;
    in.normalise = normalise;
    in.eps = eps;
    return in;
  }
  std::vector<GradcheckInput> inputs(std::int64_t L, std::int64_t S) const {
    return {{"x", random_tensor({L, width()}, 1, -2, 2)},
            {"C", random_tensor({S, H, ops::state_units(V), K, ops::kStateUnit}, 2)},
            {"n", random_tensor({S, H, K}, 3)},
            {"m", random_tensor({S, H}, 4)}};
  }
};

Variables run(Context& ctx, const Cell& cell, const Variables& v, const Segments& segments) {
  MlstmVariables state;
  if (v.size() > 1) state = {v[1], v[2], v[3]};
  auto [h, last] = mlstm(ctx, cell.arguments(ctx, v[0]), std::move(state), segments);
  return {h, last.C, last.n, last.m};
}

TEST(MlstmFunction, HasTheGradientsOfItsDefinition) {
  const std::vector<std::vector<std::int64_t>> layouts = {{0, 5}, {0, 2, 5}, {0, 0, 1, 1, 5, 5}, {0, 0}, {0}};
  for (const auto& offsets : layouts) {
    const std::int64_t L = offsets.back(), S = static_cast<std::int64_t>(offsets.size()) - 1;
    for (const Cell& cell : {Cell{}, Cell{.H = 1, .K = 1, .V = 1}, Cell{.eps = 0.1}, Cell{.eps = 0},
                             Cell{.input_gate = ops::InputGate::Sigmoid},
                             Cell{.input_gate = ops::InputGate::Sigmoid, .normalise = false}}) {
      const auto f = [&](Context& ctx, const Variables& v) {
        return run(ctx, cell, v, Segments::from_offsets(offsets, L));
      };
      expect_gradients(f, cell.inputs(L, S), 0);
      expect_gradients(f, {cell.inputs(L, S)[0]}, 0);
    }
  }
}

TEST(MlstmFunction, SameBitsForEveryNumberOfThreads) {
  const Cell cell{.H = 3, .K = 7, .V = 19};
  std::vector<Tensor> inputs;
  for (const GradcheckInput& input : cell.inputs(120, 2)) inputs.push_back(input.value);
  expect_same_bits([&](Context& ctx, const Variables& v) { return run(ctx, cell, v, Segments::uniform(2, 60)); },
                   inputs);
}

// One field of the state after another is carried; the two others start at zero.
TEST(MlstmFunction, UpdatesADonatedStateInPlace) {
  NoGrad constant;
  Context ctx = Context::serial();
  const Cell cell;
  const auto inputs = cell.inputs(4, 1);
  const Segments segments = Segments::uniform(1, 4);
  MlstmVariables given = {inputs[1].value.clone(), inputs[2].value.clone(), inputs[3].value.clone()};
  const void* memory[] = {given.C.value().raw(), given.n.value().raw(), given.m.value().raw()};
  const auto [h, last] = mlstm(ctx, cell.arguments(ctx, inputs[0].value), std::move(given), segments);
  EXPECT_EQ(last.C.value().raw(), memory[0]);
  EXPECT_EQ(last.n.value().raw(), memory[1]);
  EXPECT_EQ(last.m.value().raw(), memory[2]);
  const Tensor held = inputs[1].value;
  mlstm(ctx, cell.arguments(ctx, inputs[0].value), {held, inputs[2].value, inputs[3].value}, segments);
  EXPECT_TRUE(held.same_bits(cell.inputs(4, 1)[1].value));
}

TEST(MlstmFunction, SegmentsWithACarriedStateEqualOneRun) {
  const Cell cell;
  const auto inputs = cell.inputs(11, 1);
  // The state in one tensor: C, n, m side by side.
  const std::int64_t C = 2 * 3 * 16, n = 2 * 3, widths[] = {C, n, 2};
  expect_parts_equal_whole(
      {.rows = {inputs[0].value},
       .shared = {},
       .state = random_tensor({1, C + n + 2}, 9),
       .run =
           [&](Context& ctx, const Variables& rows, const Variables&, Variable state, const Segments& segments) {
             const Variables parts = split(ctx, state, widths);
             auto [h, last] = mlstm(ctx, cell.arguments(ctx, rows[0]),
                                    {reshape(ctx, parts[0], {1, 2, 1, 3, 16}), reshape(ctx, parts[1], {1, 2, 3}),
                                     reshape(ctx, parts[2], {1, 2})},
                                    segments);
             const Variables joined = {reshape(ctx, last.C, {1, C}), reshape(ctx, last.n, {1, n}),
                                       reshape(ctx, last.m, {1, 2})};
             return std::pair{h, concat(ctx, joined)};
           }},
      {{5, 6}, {1, 10}, {10, 1}, {0, 11}, {2, 1, 0, 3, 5}});
}

TEST(MlstmFunction, NamesWhatIsWrong) {
  Context ctx = Context::serial();
  const Segments one = Segments::uniform(1, 4);
  MlstmArguments in;
  in.q = in.k = Tensor::zeros({4, 2, 3});
  in.v = Tensor::zeros({4, 2, 5});
  in.i = in.f = Tensor::zeros({4, 2});
  MlstmArguments bad = in;
  bad.normalise = false;
  EXPECT_EQ(error_of([&] { mlstm(ctx, bad, {}, one); }),
            "[mlstm] an exponential input gate without normaliser, expected a sigmoid one");
  bad = in;
  bad.f = Tensor::zeros({4, 3});
  EXPECT_EQ(error_of([&] { mlstm(ctx, bad, {}, one); }), "[mlstm] f is [4, 3], expected [4, 2]");
  EXPECT_EQ(error_of([&] { mlstm(ctx, in, {Tensor::zeros({1, 2, 1, 3, 16}), {}, {}}, one); }),
            "[mlstm] part of a state, expected C, n and m or none of them");
  bad = in;
  bad.v = Tensor::zeros({4, 3, 5});
  EXPECT_EQ(error_of([&] { mlstm(ctx, bad, {}, one); }),
            "[mlstm] q [4, 2, 3], k [4, 2, 3] and v [4, 3, 5], expected q, k [L, H, K] and v [L, H, V] with H, K, V of "
            "at least 1");
}

}  // namespace
}  // namespace stepwell
