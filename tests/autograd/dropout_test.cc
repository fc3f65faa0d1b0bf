// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/autograd/expect_gradients.h"

namespace stepwell {
namespace {

TEST(Dropout, KeepsTheExpectedShareAndScalesIt) {
  Context ctx = Context::serial();
  const Rng rng(5, hash_name("dropout"));
  const Variable x = Tensor::full({10000}, 1.0);
  EXPECT_TRUE(dropout(ctx, x, 0, rng).value().shares_storage(x.value()));
  const Tensor y = dropout(ctx, x, 0.25, rng).value();
  int kept = 0;
  for (std::int64_t i = 0; i < 10000; ++i) {
    EXPECT_TRUE(y.at(i) == 0 || std::fabs(y.at(i) - 1 / 0.75) < 1e-6);
    EXPECT_EQ(y.at(i) != 0, rng.uniform(static_cast<std::uint64_t>(i)) >= 0.25);
    kept += y.at(i) != 0;
  }
  EXPECT_NEAR(kept, 7500, 200);
}

TEST(Dropout, DependsOnTheIndexAlone) {
  Context ctx = Context::serial();
  const Rng rng(5, 6);
  const Tensor x = random_tensor({3, 50}, 1), whole = dropout(ctx, x, 0.5, rng, 1000).value();
  for (const std::int64_t row : {0, 1, 2}) {
    const Tensor part = dropout(ctx, x.slice(0, row, 1), 0.5, rng, 1000 + static_cast<std::uint64_t>(row) * 50).value();
    EXPECT_TRUE(part.same_bits(whole.slice(0, row, 1)));
  }
  EXPECT_FALSE(dropout(ctx, x, 0.5, Rng(6, 6), 1000).value().same_bits(whole));
}

TEST(Dropout, HasTheGradientOfItsDefinition) {
  for (const double p : {0.0, 0.3, 0.9}) {
    for (const Shape& shape : {Shape{1}, Shape{5, 7}, Shape{0}}) {
      expect_gradients([p](Context& c, const Variables& v) { return Variables{dropout(c, v[0], p, Rng(1, 2), 3)}; },
                       {{"x", random_tensor(shape, 1)}}, shape.size());
    }
  }
  expect_same_bits([](Context& c, const Variables& v) { return Variables{dropout(c, v[0], 0.3, Rng(1, 2), 3)}; },
                   {random_tensor({300, 131}, 1)});
  Context ctx = Context::serial();
  for (const double p : {1.0, -0.1, std::nan("")}) {
    EXPECT_NE(error_of([&] { dropout(ctx, Tensor::zeros({1}), p, Rng(1)); }), "") << p;
  }
}

}  // namespace
}  // namespace stepwell
