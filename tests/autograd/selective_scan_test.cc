// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "ops/selective_scan/reference.h"
#include "tests/autograd/carried_state.h"

namespace stepwell {
namespace {

using ops::Discretisation;

struct ScanShape {
  std::vector<std::int64_t> offsets;
  std::int64_t D, N, G;  // G = 0: B and C [L, N]; G < 0: constant, [D, N]
};

std::vector<GradcheckInput> scan_inputs(const ScanShape& s, bool all) {
  const std::int64_t L = s.offsets.back(), S = static_cast<std::int64_t>(s.offsets.size()) - 1;
  const Shape map = s.G < 0 ? Shape{s.D, s.N} : s.G == 0 ? Shape{L, s.N} : Shape{L, s.G, s.N};
  std::vector<GradcheckInput> inputs = {{"u", random_tensor({L, s.D}, 1)},
                                        {"dt", random_tensor({L, s.D}, 2, 0.1, 1)},
                                        {"A", random_tensor({s.D, s.N}, 3, -2, -0.1)},
                                        {"B", random_tensor(map, 4)},
                                        {"C", random_tensor(map, 5)}};
  if (!all) return inputs;
  inputs.push_back({"z", random_tensor({L, s.D}, 6)});
  inputs.push_back({"D", random_tensor({s.D}, 7)});
  inputs.push_back({"dt_bias", random_tensor({s.D}, 8)});
  inputs.push_back({"h", random_tensor({S, s.N, s.D}, 9)});
  return inputs;
}

SelectiveScanArguments arguments(const Variables& v) {
  SelectiveScanArguments in{.u = v[0], .dt = v[1], .A = v[2], .B = v[3], .C = v[4], .z = {}, .D = {}, .dt_bias = {}};
  if (v.size() > 5) {
    in.z = v[5];
    in.D = v[6];
    in.dt_bias = v[7];
  }
  return in;
}

TEST(SelectiveScan, HasTheGradientsOfItsDefinition) {
  const std::vector<ScanShape> shapes = {
      {{0, 6}, 3, 2, 0},  {{0, 3, 6}, 4, 3, 2}, {{0, 0, 1, 1, 5, 5}, 2, 5, 1},
      {{0, 1}, 1, 1, 0},  {{0, 4}, 3, 2, -1},   {{0, 0}, 2, 2, 0},
      {{0}, 2, 2, 0},     {{0, 3}, 3, 0, 0},    {{0, 3}, 0, 2, 0},
      {{0, 70}, 2, 1, 0},  // more than one checkpoint
  };
  for (const ScanShape& s : shapes) {
    for (const auto discretisation : {Discretisation::Euler, Discretisation::ZeroOrder}) {
      for (const bool all : {false, true}) {
        for (const bool softplus : {false, true}) {
          expect_gradients(
              [&](Context& ctx, const Variables& v) {
                SelectiveScanArguments in = arguments(v);
                in.softplus = softplus;
                in.constant_bc = s.G < 0;
                in.discretisation = discretisation;
                if (!all) in.dt_bias = {};
                const auto [y, h] = selective_scan(ctx, in, v.size() > 8 ? v[8] : Variable(),
                                                   Segments::from_offsets(s.offsets, s.offsets.back()));
                return Variables{y, h};
              },
              scan_inputs(s, all), 0);
        }
      }
    }
  }
}

TEST(SelectiveScan, OneOutputAloneSlicesAndSharedUse) {
  expect_gradients(
      [](Context& ctx, const Variables& v) {
        const auto [B, C] = split2(ctx, v[2], 3);  // strided rows
        const SelectiveScanArguments in{
            .u = v[0], .dt = v[0], .A = v[1], .B = B, .C = C, .z = v[0], .D = {}, .dt_bias = {}};
        return Variables{selective_scan(ctx, in, {}, Segments::uniform(2, 2)).first,
                         selective_scan(ctx, in, {}, Segments::uniform(1, 4)).second};
      },
      {{"u", random_tensor({4, 2}, 1)}, {"A", random_tensor({2, 3}, 2, -2, -0.1)}, {"BC", random_tensor({4, 6}, 3)}});
}

TEST(SelectiveScan, HasTheValuesOfTheReference) {
  Context ctx = Context::serial();
  for (const bool constant : {false, true}) {
    for (const bool softplus : {false, true}) {
      for (const auto discretisation : {Discretisation::Euler, Discretisation::ZeroOrder}) {
        const ScanShape shape{{0, 2, 2, 7}, 4, 3, constant ? -1 : 2};
        const Segments segments = Segments::from_offsets(shape.offsets, 7);
        std::vector<Tensor> t;
        Variables constants;
        for (const GradcheckInput& input : scan_inputs(shape, true)) {
          t.push_back(input.value);
          constants.push_back(input.value);
        }
        SelectiveScanArguments given = arguments(constants);
        given.softplus = softplus;
        given.constant_bc = constant;
        given.discretisation = discretisation;
        const auto [y, last] = selective_scan(ctx, given, t[8], segments);
        const Tensor expected = Tensor::empty({7, 4}, DType::F64), after = t[8].clone();
        const auto map = [](const Tensor& m) { return m.rank() == 3 ? m : m.reshape({m.size(0), 1, m.size(1)}); };
        const ops::SelectiveScanInputs<double> in{.u = t[0].view<const double, 2>(),
                                                  .dt = t[1].view<const double, 2>(),
                                                  .A = t[2].view<const double, 2>(),
                                                  .B = map(t[3]).view<const double, 3>(),
                                                  .C = map(t[4]).view<const double, 3>(),
                                                  .z = t[5].view<const double, 2>(),
                                                  .D = t[6].data<double>(),
                                                  .dt_bias = t[7].data<double>(),
                                                  .softplus = softplus,
                                                  .constant_bc = constant,
                                                  .discretisation = discretisation};
        ops::reference::selective_scan<double>(in, segments, after.view<double, 3>(), expected.view<double, 2>());
        expect_close(y.value(), expected);
        expect_close(last.value(), after);
      }
    }
  }
}

CarriedCase carried_case() {
  return {.rows = {random_tensor({13, 4}, 1), random_tensor({13, 4}, 2), random_tensor({13, 2, 3}, 4),
                   random_tensor({13, 2, 3}, 5), random_tensor({13, 4}, 6)},
          .shared = {random_tensor({4, 3}, 3, -2, -0.1), random_tensor({4}, 7), random_tensor({4}, 8)},
          .state = random_tensor({1, 3, 4}, 9),
          .run = [](Context& ctx, const Variables& rows, const Variables& shared, Variable state,
                    const Segments& segments) {
            const SelectiveScanArguments in{.u = rows[0],
                                            .dt = rows[1],
                                            .A = shared[0],
                                            .B = rows[2],
                                            .C = rows[3],
                                            .z = rows[4],
                                            .D = shared[1],
                                            .dt_bias = shared[2]};
            return selective_scan(ctx, in, std::move(state), segments);
          }};
}

TEST(SelectiveScan, SegmentsWithACarriedStateEqualOneRun) {
  expect_parts_equal_whole(carried_case(), {{6, 7}, {1, 12}, {12, 1}, {0, 13}, {2, 1, 0, 3, 7}});
}

TEST(SelectiveScan, SkipsOnlyWhatIsNotWanted) { expect_gradients_of_single_inputs(carried_case()); }

TEST(SelectiveScan, UpdatesADonatedStateInPlace) {
  expect_state_donation(carried_case());
  expect_no_donation_while_recording(carried_case());
}

TEST(SelectiveScan, SameBitsForEveryNumberOfThreads) {
  std::vector<Tensor> inputs;
  for (const GradcheckInput& input : scan_inputs({{0, 90, 180, 270}, 70, 5, 2}, true)) inputs.push_back(input.value);
  const std::vector<std::int64_t> offsets = {0, 90, 180, 270};
  expect_same_bits(
      [&](Context& ctx, const Variables& v) {
        const auto [y, h] = selective_scan(ctx, arguments(v), v[8], Segments::from_offsets(offsets, 270));
        return Variables{y, h};
      },
      inputs);
}

TEST(FieldReport, P34_ScanWithTwoLeaves) {
  // y_t = a_t y_{t−1} + b_t, decay and input as leaves of their own; decays from 1e-30 to almost 1.
  for (const std::int64_t L : {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 1000}) {
    Tensor steps = random_tensor({L, 1}, 1, 0.01, 1);
    for (std::int64_t t = 0; t < L; t += 3) steps.data<double>()[t] = t % 2 ? 69.0 : 1e-4;
    Context ctx = Context::serial();
    const auto run = [L, &ctx](const Variables& v) {
      const SelectiveScanArguments in{
          .u = v[1], .dt = v[0], .A = v[2], .B = v[3], .C = v[3], .z = {}, .D = {}, .dt_bias = {}, .softplus = false};
      return Variables{selective_scan(ctx, in, v[4], Segments::uniform(1, L)).first};
    };
    const GradcheckResult result = gradcheck(ctx, run,
                                             {{"dt", steps},
                                              {"u", random_tensor({L, 1}, 2)},
                                              {"A", Tensor::full({1, 1}, -1, DType::F64)},
                                              {"B", Tensor::full({L, 1}, 1, DType::F64)},
                                              {"h", random_tensor({1, 1, 1}, 3)}},
                                             64);
    EXPECT_TRUE(result.passed) << L << " tokens: " << result.to_string();
  }
  // The first decay meets a state of zero: its gradient is exactly zero.
  Context ctx = Context::serial();
  const Variable A = Variable::leaf(Tensor::full({1, 1}, -1, DType::F64)), one = Tensor::full({1, 1}, 1, DType::F64);
  const SelectiveScanArguments in{.u = one, .dt = one, .A = A, .B = one, .C = one, .z = {}, .D = {}, .dt_bias = {}};
  const Variable y = selective_scan(ctx, in, {}, Segments::uniform(1, 1)).first;
  EXPECT_EQ(backward(ctx, y).of(A).at(0), 0);
}

TEST(SelectiveScan, InfiniteDecayRatesAndStepsOfZeroStayFinite) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    Context ctx = Context::serial();
    Tensor A = random_tensor({3, 2}, 3, -2, -0.1, dtype), dt = random_tensor({6, 3}, 2, 0, 1, dtype);
    A.slice(0, 1, 1).fill(-std::numeric_limits<double>::infinity());
    dt.slice(0, 2, 2).fill(-1e4);  // softplus gives 0
    Variables leaves;
    for (const Tensor& t : {random_tensor({6, 3}, 1, -1, 1, dtype), dt, A, random_tensor({6, 2}, 4, -1, 1, dtype),
                            random_tensor({6, 2}, 5, -1, 1, dtype)}) {
      leaves.push_back(Variable::leaf(t));
    }
    leaves.push_back(Variable::leaf(random_tensor({1, 2, 3}, 6, -1, 1, dtype)));
    const SelectiveScanArguments in{.u = leaves[0],
                                    .dt = leaves[1],
                                    .A = leaves[2],
                                    .B = leaves[3],
                                    .C = leaves[4],
                                    .z = {},
                                    .D = {},
                                    .dt_bias = {}};
    const auto [y, h] = selective_scan(ctx, in, leaves[5], Segments::uniform(1, 6));
    const Variable loss = add(ctx, sum(ctx, y), sum(ctx, h));
    EXPECT_TRUE(std::isfinite(loss.value().at(0)));
    const Gradients g = backward(ctx, loss);
    for (const Variable& leaf : leaves) {
      for (std::int64_t i = 0; i < leaf.value().numel(); ++i) EXPECT_TRUE(std::isfinite(g.of(leaf).at(i))) << i;
    }
  }
}

TEST(SelectiveScan, OffsetsMayBeGoneBeforeTheBackwardPass) {
  Context ctx = Context::serial();
  const ScanShape shape{{0, 3, 6}, 2, 2, 0};
  Variables leaves;
  for (const GradcheckInput& input : scan_inputs(shape, true)) leaves.push_back(Variable::leaf(input.value));
  Variable y;
  {
    std::vector<std::int64_t> offsets = shape.offsets;
    y = selective_scan(ctx, arguments(leaves), leaves[8], Segments::from_offsets(offsets, 6)).first;
    std::fill(offsets.begin(), offsets.end(), -1);
  }
  const Variable again =
      selective_scan(ctx, arguments(leaves), leaves[8], Segments::from_offsets(shape.offsets, 6)).first;
  const Tensor ones = Tensor::full(y.shape(), 1, DType::F64);
  const Gradients a = backward(ctx, std::span(&y, 1), std::span(&ones, 1)),
                  b = backward(ctx, std::span(&again, 1), std::span(&ones, 1));
  for (const Variable& leaf : leaves) EXPECT_TRUE(a.of(leaf).same_bits(b.of(leaf)));
}

TEST(SelectiveScan, NamesWhatIsWrong) {
  Context ctx = Context::serial();
  const auto message = [&](auto change) {
    const auto zeros = [](const Shape& shape) { return Variable(Tensor::zeros(shape)); };
    SelectiveScanArguments in{.u = zeros({4, 6}),
                              .dt = zeros({4, 6}),
                              .A = zeros({6, 2}),
                              .B = zeros({4, 2}),
                              .C = zeros({4, 2}),
                              .z = {},
                              .D = {},
                              .dt_bias = {}};
    Variable h;
    change(in, h);
    return error_of([&] { selective_scan(ctx, in, h, Segments::uniform(2, 2)); });
  };
  const auto t = [](const Shape& shape) { return Variable(Tensor::zeros(shape)); };
  EXPECT_EQ(message([](auto&, auto&) {}), "");
  EXPECT_EQ(message([&](auto& in, auto&) { in.dt = t({4, 5}); }), "[selective_scan] dt is [4, 5], expected [4, 6]");
  EXPECT_EQ(message([&](auto& in, auto&) { in.dt = {}; }), "[selective_scan] dt is undefined, expected F32 or F64");
  EXPECT_EQ(message([&](auto& in, auto&) { in.A = t({5, 2}); }),
            "[selective_scan] u [4, 6] and A [5, 2], expected u [L, D] and A [D, N]");
  EXPECT_EQ(message([&](auto& in, auto&) { in.B = t({4, 4, 2}); }),
            "[selective_scan] B is [4, 4, 2] for 6 channels; expected a number of groups that divides the channels");
  EXPECT_EQ(message([&](auto& in, auto&) { in.B = t({4, 3, 2}); }),
            "[selective_scan] B [4, 3, 2] and C [4, 2], expected equally many groups");
  EXPECT_EQ(message([&](auto& in, auto&) { in.C = t({4, 3}); }),
            "[selective_scan] C is [4, 3], expected [L, N] or [L, G, N] with L = 4 and N = 2");
  EXPECT_EQ(message([&](auto& in, auto&) { in.constant_bc = true; }), "[selective_scan] B is [4, 2], expected [6, 2]");
  EXPECT_EQ(message([&](auto&, auto& h) { h = t({1, 2, 6}); }), "[selective_scan] h is [1, 2, 6], expected [2, 2, 6]");
  EXPECT_EQ(message([&](auto& in, auto&) { in.z = Tensor::zeros({4, 6}, DType::F64); }),
            "[selective_scan] z is F64 [4, 6], u is F32 [4, 6]; expected the same dtype");
}

}  // namespace
}  // namespace stepwell
