// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include "ops/short_conv/reference.h"
#include "tests/autograd/carried_state.h"

namespace stepwell {
namespace {

using ops::Activation;

TEST(ShortConv, HasTheGradientsOfItsDefinition) {
  const std::vector<std::vector<std::int64_t>> layouts = {{0, 6}, {0, 3, 6}, {0, 0, 1, 1, 6, 6}, {0, 1}, {0, 0}, {0}};
  for (const auto& offsets : layouts) {
    for (const std::int64_t D : {1, 3}) {
      for (const std::int64_t K : {1, 2, 4, 5}) {
        const std::int64_t L = offsets.back(), S = static_cast<std::int64_t>(offsets.size()) - 1;
        const Activation activation = (D + K) % 2 ? Activation::None : Activation::Silu;
        const auto run = [&](Context& ctx, const Variables& v) {
          const auto [y, state] =
              short_conv(ctx, v[0], v[1], v.size() > 2 ? v[2] : Variable(), v.size() > 3 ? v[3] : Variable(),
                         Segments::from_offsets(offsets, L), activation);
          return Variables{y, state};
        };
        const GradcheckInput x{"x", random_tensor({L, D}, 1)}, weight{"weight", random_tensor({D, K}, 2)},
            published{"weight", random_tensor({D, 1, K}, 2)}, bias{"bias", random_tensor({D}, 3)},
            state{"state", random_tensor({S, K, D}, 4)};
        expect_gradients(run, {x, weight, bias, state});
        expect_gradients(run, {x, published});
      }
    }
  }
}

TEST(ShortConv, TakesSlicesAndOneOutputAlone) {
  expect_gradients(
      [](Context& ctx, const Variables& v) {
        const auto [x, z] = split2(ctx, v[0], 3);
        return Variables{short_conv(ctx, x, v[1], {}, {}, Segments::uniform(1, 4)).first,
                         short_conv(ctx, z, v[1], {}, v[2], Segments::uniform(1, 4)).second};
      },
      {{"xz", random_tensor({4, 6}, 1)}, {"weight", random_tensor({3, 4}, 2)}, {"state", random_tensor({1, 4, 3}, 3)}});
}

TEST(ShortConv, HasTheValuesOfTheReference) {
  Context ctx = Context::serial();
  const std::vector<std::int64_t> offsets = {0, 2, 2, 7};
  const Segments segments = Segments::from_offsets(offsets, 7);
  const Tensor x = random_tensor({7, 3}, 1), weight = random_tensor({3, 4}, 2), bias = random_tensor({3}, 3),
               state = random_tensor({3, 4, 3}, 4);
  for (const Activation activation : {Activation::None, Activation::Silu}) {
    const auto [y, last] = short_conv(ctx, x, weight.reshape({3, 1, 4}), Variable(bias), state, segments, activation);
    const Tensor expected = Tensor::empty({7, 3}, DType::F64), after = state.clone();
    const ops::ShortConvInputs<double> in{.x = x.view<const double, 2>(),
                                          .weight = weight.view<const double, 2>(),
                                          .bias = bias.data<double>(),
                                          .activation = activation};
    ops::reference::short_conv<double>(in, segments, after.view<double, 3>(), expected.view<double, 2>());
    expect_close(y.value(), expected);
    expect_close(last.value(), after);
  }
}

CarriedCase carried_case(Activation activation) {
  return {.rows = {random_tensor({11, 5}, 1)},
          .shared = {random_tensor({5, 4}, 2), random_tensor({5}, 3)},
          .state = random_tensor({1, 4, 5}, 4),
          .run = [activation](Context& ctx, const Variables& rows, const Variables& shared, Variable state,
                              const Segments& segments) {
            return short_conv(ctx, rows[0], shared[0], shared[1], std::move(state), segments, activation);
          }};
}

TEST(ShortConv, SegmentsWithACarriedStateEqualOneRun) {
  for (const Activation activation : {Activation::None, Activation::Silu}) {
    expect_parts_equal_whole(carried_case(activation), {{5, 6}, {1, 10}, {10, 1}, {0, 11}, {2, 1, 0, 3, 5}});
  }
}

TEST(ShortConv, SkipsOnlyWhatIsNotWanted) { expect_gradients_of_single_inputs(carried_case(Activation::Silu)); }

TEST(ShortConv, UpdatesADonatedStateInPlace) {
  expect_state_donation(carried_case(Activation::Silu));
  expect_no_donation_while_recording(carried_case(Activation::Silu));
}

TEST(ShortConv, SameBitsForEveryNumberOfThreads) {
  expect_same_bits(
      [](Context& ctx, const Variables& v) {
        const auto [y, state] = short_conv(ctx, v[0], v[1], v[2], v[3], Segments::uniform(3, 200));
        return Variables{y, state};
      },
      {random_tensor({600, 67}, 1), random_tensor({67, 4}, 2), random_tensor({67}, 3), random_tensor({3, 4, 67}, 4)});
}

TEST(ShortConv, NamesWhatIsWrong) {
  Context ctx = Context::serial();
  const Segments one = Segments::uniform(1, 4);
  const Variable x = Tensor::zeros({4, 3}), w = Tensor::zeros({3, 2});
  const auto message = [&](const Variable& input, const Variable& weight, const Variable& bias, const Variable& state) {
    return error_of([&] { short_conv(ctx, input, weight, bias, state, one); });
  };
  EXPECT_EQ(message(x, Tensor::zeros({2, 2}), {}, {}),
            "[short_conv] x [4, 3] and weight [2, 2], expected x [L, D] and weight [D, K] or [D, 1, K] with K ≥ 1");
  EXPECT_EQ(message(x, Tensor::zeros({3, 0}), {}, {}),
            "[short_conv] x [4, 3] and weight [3, 0], expected x [L, D] and weight [D, K] or [D, 1, K] with K ≥ 1");
  EXPECT_EQ(message(x, w, Tensor::zeros({2}), {}), "[short_conv] bias is [2], expected [3]");
  EXPECT_EQ(message(x, w, {}, Tensor::zeros({1, 3, 2})), "[short_conv] state is [1, 3, 2], expected [1, 2, 3]");
  EXPECT_EQ(message(Tensor::zeros({5, 3}), w, {}, {}), "[short_conv] 5 rows for segments of 4 tokens");
}

}  // namespace
}  // namespace stepwell
