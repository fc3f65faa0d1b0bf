// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include "tests/autograd/carried_state.h"

namespace stepwell {
namespace {

// A state whose n is positive, as every state of the cell is.
Tensor cell_state(std::int64_t S, std::int64_t width) {
  const Tensor state = random_tensor({S, 4, width}, 4);
  state.slice(1, 2, 1).copy_from(random_tensor({S, 1, width}, 5, 0.5, 2));
  return state;
}

TEST(SlstmFunction, HasTheGradientsOfItsDefinition) {
  const std::vector<std::vector<std::int64_t>> layouts = {{0, 5}, {0, 2, 5}, {0, 0, 1, 1, 5, 5}, {0, 0}, {0}};
  for (const auto& offsets : layouts) {
    for (const auto& [H, D] : {std::array<std::int64_t, 2>{1, 1}, {2, 3}, {3, 5}}) {
      const std::int64_t L = offsets.back(), S = static_cast<std::int64_t>(offsets.size()) - 1, width = H * D;
      const auto f = [&](Context& ctx, const Variables& v) {
        const auto [y, state] = slstm(ctx, v[0], v[1], v.size() > 2 ? v[2] : Variable(),
                                      v.size() > 3 ? v[3] : Variable(), Segments::from_offsets(offsets, L));
        return Variables{y, state};
      };
      std::vector<GradcheckInput> inputs = {{"x", random_tensor({L, 4 * width}, 1, -2, 2)},
                                            {"R", random_tensor({H, 4 * D, D}, 2)},
                                            {"bias", random_tensor({4 * width}, 3)},
                                            {"state", cell_state(S, width)}};
      expect_gradients(f, inputs, 0);
      inputs.resize(2);
      expect_gradients(f, inputs, 0);
    }
  }
}

CarriedCase carried_case() {
  return {.rows = {random_tensor({11, 24}, 1, -2, 2)},
          .shared = {random_tensor({2, 12, 3}, 2), random_tensor({24}, 3)},
          .state = cell_state(1, 6),
          .run = [](Context& ctx, const Variables& rows, const Variables& shared, Variable state,
                    const Segments& segments) {
            return slstm(ctx, rows[0], shared[0], shared[1], std::move(state), segments);
          }};
}

TEST(SlstmFunction, SegmentsWithACarriedStateEqualOneRun) {
  expect_parts_equal_whole(carried_case(), {{5, 6}, {1, 10}, {10, 1}, {0, 11}, {2, 1, 0, 3, 5}});
}

TEST(SlstmFunction, SkipsOnlyWhatIsNotWanted) { expect_gradients_of_single_inputs(carried_case()); }

TEST(SlstmFunction, UpdatesADonatedStateInPlace) {
  expect_state_donation(carried_case());
  expect_no_donation_while_recording(carried_case());
}

TEST(SlstmFunction, SameBitsForEveryNumberOfThreads) {
  expect_same_bits(
      [](Context& ctx, const Variables& v) {
        const auto [y, state] = slstm(ctx, v[0], v[1], v[2], v[3], Segments::uniform(2, 60));
        return Variables{y, state};
      },
      {random_tensor({120, 12 * 7}, 1), random_tensor({3, 28, 7}, 2), random_tensor({12 * 7}, 3), cell_state(2, 21)});
}

TEST(SlstmFunction, NamesWhatIsWrong) {
  Context ctx = Context::serial();
  const Segments one = Segments::uniform(1, 4);
  const Variable x = Tensor::zeros({4, 24}), R = Tensor::zeros({2, 12, 3});
  EXPECT_EQ(error_of([&] { slstm(ctx, x, Tensor::zeros({2, 3, 12}), {}, {}, one); }),
            "[slstm] R [2, 3, 12], expected [H, 4·D, D] with H and D of at least 1");
  EXPECT_EQ(error_of([&] { slstm(ctx, Tensor::zeros({4, 20}), R, {}, {}, one); }),
            "[slstm] x [4, 20] for R [2, 12, 3], expected [L, 24]");
  EXPECT_EQ(error_of([&] { slstm(ctx, x, R, {}, Tensor::zeros({4, 1, 6}), one); }),
            "[slstm] state is [4, 1, 6], expected [1, 4, 6]");
}

}  // namespace
}  // namespace stepwell
