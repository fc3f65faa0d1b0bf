// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/autograd/expect_gradients.h"

namespace stepwell {
namespace {

TEST(SumAndMean, HaveTheValuesAndGradientsOfTheirDefinitions) {
  Context ctx = Context::serial();
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{3, 13}, Shape{2, 1, 300}, Shape{0}, Shape{3, 0}, Shape{}}) {
    const Tensor x = random_tensor(shape, 1);
    double total = 0;
    for (std::int64_t i = 0; i < x.numel(); ++i) total += x.at(i);
    EXPECT_EQ(sum(ctx, x).shape(), Shape{1});
    EXPECT_NEAR(sum(ctx, x).value().at(0), total, 1e-12);
    EXPECT_NEAR(mean(ctx, x).value().at(0), x.numel() ? total / static_cast<double>(x.numel()) : 0.0, 1e-14);
    expect_gradients([](Context& c, const Variables& v) { return Variables{sum(c, v[0]), mean(c, v[0])}; }, {{"x", x}},
                     shape.size());
  }
  expect_gradients(
      [](Context& c, const Variables& v) { return Variables{mean(c, split2(c, mul(c, v[0], v[0]), 2).second)}; },
      {{"x", random_tensor({3, 5}, 1)}});
}

TEST(MseLoss, HasTheValueAndGradientOfItsDefinition) {
  Context ctx = Context::serial();
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{3, 13}, Shape{2, 1, 300}, Shape{0}}) {
    const Tensor x = random_tensor(shape, 1), target = random_tensor(shape, 2);
    double total = 0;
    for (std::int64_t i = 0; i < x.numel(); ++i) total += (x.at(i) - target.at(i)) * (x.at(i) - target.at(i));
    EXPECT_NEAR(mse_loss(ctx, x, target).value().at(0), x.numel() ? total / static_cast<double>(x.numel()) : 0.0,
                1e-14);
    expect_gradients([&](Context& c, const Variables& v) { return Variables{mse_loss(c, v[0], target)}; }, {{"x", x}},
                     shape.size());
  }
  EXPECT_EQ(error_of([&] { mse_loss(ctx, Tensor::zeros({2, 3}), Tensor::zeros({3, 2})); }),
            "[mse_loss] target is [3, 2], expected [2, 3]");
  EXPECT_EQ(error_of([&] { mse_loss(ctx, Tensor::zeros({2}), {}); }),
            "[mse_loss] target is undefined, expected F32 or F64");
}

TEST(Reductions, SameBitsForEveryNumberOfThreads) {
  const Tensor target = random_tensor({700, 77}, 2);
  expect_same_bits(
      [&](Context& ctx, const Variables& v) {
        return Variables{sum(ctx, v[0]), mean(ctx, v[0]), mse_loss(ctx, v[0], target.to(v[0].dtype()))};
      },
      {random_tensor({700, 77}, 1)});
}

}  // namespace
}  // namespace stepwell
