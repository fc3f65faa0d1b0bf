// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include "ops/linear_attention/reference.h"
#include "tests/autograd/carried_state.h"

namespace stepwell {
namespace {

TEST(LinearAttention, HasTheGradientsOfItsDefinition) {
  const std::vector<std::vector<std::int64_t>> layouts = {{0, 5}, {0, 2, 5}, {0, 0, 1, 1, 5, 5}, {0, 0}, {0}};
  for (const auto& offsets : layouts) {
    for (const auto& [H, K, V] :
         {std::array<std::int64_t, 3>{1, 1, 1}, {2, 3, 2}, {3, 1, 5}, {1, 0, 2}, {1, 2, 0}, {0, 2, 2}}) {
      const std::int64_t L = offsets.back(), S = static_cast<std::int64_t>(offsets.size()) - 1;
      const Tensor decay = random_tensor({H}, 5, 0, 1);
      expect_gradients(
          [&](Context& ctx, const Variables& v) {
            const auto [y, state] =
                linear_attention(ctx, v[0], v[1], v[2], decay, 0.7, v.size() > 3 ? v[3] : Variable(),
                                 Segments::from_offsets(offsets, L));
            return Variables{y, state};
          },
          {{"q", random_tensor({L, H, K}, 1)},
           {"k", random_tensor({L, H, K}, 2)},
           {"v", random_tensor({L, H, V}, 3)},
           {"state", random_tensor({S, H, K, V}, 4)}},
          0);
    }
  }
}

TEST(LinearAttention, OneOutputAloneAndSharedUse) {
  expect_gradients(
      [](Context& ctx, const Variables& v) {
        const Tensor decay = random_tensor({2}, 5, 0, 1);
        return Variables{linear_attention(ctx, v[0], v[0], v[0], decay, 1, {}, Segments::uniform(2, 2)).first,
                         linear_attention(ctx, v[0], v[0], v[0], decay, 1, {}, Segments::uniform(1, 4)).second};
      },
      {{"x", random_tensor({4, 2, 3}, 1)}});
}

TEST(LinearAttention, HasTheValuesOfTheReference) {
  Context ctx = Context::serial();
  const std::vector<std::int64_t> offsets = {0, 2, 2, 7};
  const Segments segments = Segments::from_offsets(offsets, 7);
  const Tensor q = random_tensor({7, 2, 3}, 1), k = random_tensor({7, 2, 3}, 2), v = random_tensor({7, 2, 5}, 3),
               decay = random_tensor({2}, 4, 0, 1), state = random_tensor({3, 2, 3, 5}, 5);
  const auto [y, last] = linear_attention(ctx, q, k, v, decay, 0.7, state, segments);
  const Tensor expected = Tensor::empty({7, 2, 5}, DType::F64), after = state.clone();
  const ops::LinearAttentionInputs<double> in{.q = q.view<const double, 3>(),
                                              .k = k.view<const double, 3>(),
                                              .v = v.view<const double, 3>(),
                                              .decay = decay.data<double>(),
                                              .scale = 0.7};
  ops::reference::linear_attention<double>(in, segments, after.reshape({6, 3, 5}).view<double, 3>(),
                                           expected.view<double, 3>());
  expect_close(y.value(), expected);
  expect_close(last.value(), after);
}

CarriedCase carried_case() {
  return {.rows = {random_tensor({11, 2, 3}, 1), random_tensor({11, 2, 3}, 2), random_tensor({11, 2, 4}, 3)},
          .shared = {},
          .state = random_tensor({1, 2, 3, 4}, 4),
          .run = [](Context& ctx, const Variables& rows, const Variables&, Variable state, const Segments& segments) {
            return linear_attention(ctx, rows[0], rows[1], rows[2], random_tensor({2}, 5, 0.5, 1), 0.7,
                                    std::move(state), segments);
          }};
}

TEST(LinearAttention, SegmentsWithACarriedStateEqualOneRun) {
  expect_parts_equal_whole(carried_case(), {{5, 6}, {1, 10}, {10, 1}, {0, 11}, {2, 1, 0, 3, 5}});
}

TEST(LinearAttention, SkipsOnlyWhatIsNotWanted) { expect_gradients_of_single_inputs(carried_case()); }

TEST(LinearAttention, UpdatesADonatedStateInPlace) {
  expect_state_donation(carried_case());
  expect_no_donation_while_recording(carried_case());
}

TEST(LinearAttention, SameBitsForEveryNumberOfThreads) {
  expect_same_bits(
      [](Context& ctx, const Variables& v) {
        const Tensor decay = random_tensor({3}, 5, 0.5, 1).to(v[0].dtype());
        const auto [y, state] = linear_attention(ctx, v[0], v[1], v[2], decay, 0.7, v[3], Segments::uniform(2, 60));
        return Variables{y, state};
      },
      {random_tensor({120, 3, 7}, 1), random_tensor({120, 3, 7}, 2), random_tensor({120, 3, 19}, 3),
       random_tensor({2, 3, 7, 19}, 4)});
}

TEST(LinearAttention, NamesWhatIsWrong) {
  Context ctx = Context::serial();
  const Variable q = Tensor::zeros({4, 2, 3}), v = Tensor::zeros({4, 2, 5});
  const Tensor decay = Tensor::zeros({2});
  const Segments one = Segments::uniform(1, 4);
  EXPECT_EQ(error_of([&] { linear_attention(ctx, q, v, v, decay, 1, {}, one); }),
            "[linear_attention] q [4, 2, 3], k [4, 2, 5] and v [4, 2, 5], expected q, k [L, H, K] and v [L, H, V]");
  EXPECT_EQ(error_of([&] { linear_attention(ctx, q, q, v, Tensor::zeros({3}), 1, {}, one); }),
            "[linear_attention] decay [3] for q [4, 2, 3], expected [H]");
  EXPECT_EQ(error_of([&] { linear_attention(ctx, q, q, v, decay, 1, Tensor::zeros({1, 2, 5, 3}), one); }),
            "[linear_attention] state is [1, 2, 5, 3], expected [1, 2, 3, 5]");
}

}  // namespace
}  // namespace stepwell
