// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include "tests/autograd/expect_gradients.h"

namespace stepwell {
namespace {

const std::vector<Shape> kShapes = {{3, 5}, {1, 1}, {7}, {2, 3, 13}, {4, 1}, {0, 3}, {3, 0}};

Variable optional(const Variables& v, std::size_t i) { return i < v.size() ? v[i] : Variable(); }

TEST(Softmax, HasTheGradientsOfItsDefinition) {
  for (const Shape& shape : kShapes) {
    expect_gradients([](Context& ctx, const Variables& v) { return Variables{softmax(ctx, v[0])}; },
                     {{"x", random_tensor(shape, 1, -3, 3)}}, shape.size());
  }
}

TEST(LayerNorm, HasTheGradientsOfItsDefinition) {
  for (const Shape& shape : kShapes) {
    const GradcheckInput x{"x", random_tensor(shape, 1)}, weight{"weight", random_tensor({shape[-1]}, 2)},
        bias{"bias", random_tensor({shape[-1]}, 3)};
    const auto f = [](Context& ctx, const Variables& v) {
      return Variables{layer_norm(ctx, v[0], optional(v, 1), optional(v, 2), 1e-3)};
    };
    expect_gradients(f, {x, weight, bias}, 0);
    expect_gradients(f, {x, weight}, 0);
    expect_gradients(f, {x}, 0);
  }
}

TEST(LayerNorm, GroupsAndOnePlusWeight) {
  for (const std::int64_t group : {0, 1, 3, 6}) {
    for (const bool one_plus : {false, true}) {
      const auto f = [group, one_plus](Context& ctx, const Variables& v) {
        return Variables{layer_norm(ctx, v[0], optional(v, 1), optional(v, 2), 1e-3, group, one_plus)};
      };
      const GradcheckInput x{"x", random_tensor({4, 6}, 1)}, weight{"weight", random_tensor({6}, 2)},
          bias{"bias", random_tensor({6}, 3)};
      expect_gradients(f, {x, weight, bias});
      expect_gradients(f, {x});
    }
  }
}

TEST(RmsNorm, HasTheGradientsOfItsDefinition) {
  for (const Shape& shape : kShapes) {
    const GradcheckInput x{"x", random_tensor(shape, 1)}, weight{"weight", random_tensor({shape[-1]}, 2)};
    const auto f = [](Context& ctx, const Variables& v) {
      return Variables{rms_norm(ctx, v[0], optional(v, 1), 1e-3)};
    };
    expect_gradients(f, {x, weight}, 0);
    expect_gradients(f, {x}, 0);
  }
}

TEST(RmsNorm, GroupsAndGates) {
  for (const std::int64_t group : {0, 1, 3, 6}) {
    const GradcheckInput x{"x", random_tensor({4, 6}, 1)}, z{"z", random_tensor({4, 6}, 2)},
        weight{"weight", random_tensor({6}, 3)};
    expect_gradients(
        [group](Context& ctx, const Variables& v) { return Variables{rms_norm(ctx, v[0], v[1], 1e-3, group)}; },
        {x, weight});
    for (const GateOrder order : {GateOrder::Before, GateOrder::After}) {
      const auto f = [group, order](Context& ctx, const Variables& v) {
        return Variables{gated_rms_norm(ctx, v[0], v[1], optional(v, 2), 1e-3, order, group)};
      };
      expect_gradients(f, {x, z, weight});
      expect_gradients(f, {x, z});
      expect_gradients(
          [group, order](Context& ctx, const Variables& v) {
            return Variables{gated_rms_norm(ctx, v[0], v[1], v[2], 1e-3, order, group, GateActivation::Sigmoid)};
          },
          {x, z, weight});
    }
  }
}

TEST(SumNorm, HasTheGradientsOfItsDefinition) {
  for (const Shape& shape : kShapes) {
    expect_gradients([](Context& ctx, const Variables& v) { return Variables{sum_norm(ctx, v[0])}; },
                     {{"x", random_tensor(shape, 1, 0.5, 2)}}, 0);
  }
}

TEST(RmsNorm, TakesSlicesAndSharedUse) {
  expect_gradients(
      [](Context& ctx, const Variables& v) {
        const auto [a, b] = split2(ctx, v[0], 3);
        return Variables{rms_norm(ctx, a, {}, 1e-5), softmax(ctx, b), layer_norm(ctx, b, {}, {}, 1e-5),
                         gated_rms_norm(ctx, a, a, {}, 1e-5, GateOrder::After)};
      },
      {{"x", random_tensor({4, 6}, 1)}});
}

TEST(Norms, SameBitsForEveryNumberOfThreads) {
  expect_same_bits(
      [](Context& ctx, const Variables& v) {
        return Variables{softmax(ctx, v[0]), rms_norm(ctx, v[0], v[2], 1e-5), layer_norm(ctx, v[0], v[2], v[3], 1e-5),
                         gated_rms_norm(ctx, v[0], v[1], v[2], 1e-5, GateOrder::Before, 7),
                         gated_rms_norm(ctx, v[0], v[1], v[2], 1e-5, GateOrder::After)};
      },
      {random_tensor({700, 77}, 1), random_tensor({700, 77}, 2), random_tensor({77}, 3), random_tensor({77}, 4)});
}

TEST(Norms, NameWhatIsWrong) {
  Context ctx = Context::serial();
  const Variable x = Tensor::zeros({2, 6});
  EXPECT_EQ(error_of([&] { rms_norm(ctx, x, Tensor::zeros({5}), 1e-5); }), "[rms_norm] weight is [5], expected [6]");
  EXPECT_EQ(error_of([&] { rms_norm(ctx, x, {}, 1e-5, 4); }),
            "[rms_norm] group = 4 for x [2, 6], expected a divisor of its last extent, or 0");
  EXPECT_EQ(error_of([&] { rms_norm(ctx, x, {}, -1); }), "[rms_norm] eps = -1.000000, expected ≥ 0");
  EXPECT_EQ(error_of([&] { gated_rms_norm(ctx, x, Tensor::zeros({2, 5}), {}, 1e-5, GateOrder::After); }),
            "[gated_rms_norm] z is [2, 5], expected [2, 6]");
  EXPECT_EQ(error_of([&] { gated_rms_norm(ctx, x, {}, {}, 1e-5, GateOrder::After); }),
            "[gated_rms_norm] z is undefined, expected F32 or F64");
  EXPECT_EQ(error_of([&] { layer_norm(ctx, x, {}, Tensor::zeros({5}), 1e-5); }),
            "[layer_norm] bias is [5], expected [6]");
  EXPECT_EQ(error_of([&] { layer_norm(ctx, x, {}, {}, 1e-5, 4); }),
            "[layer_norm] group = 4 for x [2, 6], expected a divisor of its last extent, or 0");
  EXPECT_EQ(error_of([&] { softmax(ctx, Tensor::zeros({})); }),
            "[softmax] x is a scalar, expected at least one dimension");
}

}  // namespace
}  // namespace stepwell
