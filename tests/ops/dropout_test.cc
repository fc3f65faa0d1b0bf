// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/dropout.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TEST(DropoutMask, ComparesTheNumberOfEachIndex) {
  const Rng rng(3, 4);
  for (const std::size_t n : {0, 1, 7, 4096, 10007}) {
    std::vector<std::uint8_t> serial(n, 7), parallel(n, 7);
    Context one = Context::serial(), four = Context::parallel(4);
    ops::dropout_mask(one, rng, 11, 0.3, serial);
    ops::dropout_mask(four, rng, 11, 0.3, parallel);
    EXPECT_EQ(serial, parallel);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(serial[i], rng.uniform(11 + i) >= 0.3 ? 1 : 0) << i;
  }
}

TEST(ApplyDropout, ScalesWhatIsKeptAndZeroesTheRest) {
  Context ctx = Context::serial();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {1, 2, std::nanf(""), infinity, 5};
  const std::vector<std::uint8_t> keep = {1, 0, 0, 0, 1};
  std::vector<float> y(5, std::nanf(""));
  ops::apply_dropout<float>(ctx, x, keep, 2.0f, y);
  EXPECT_EQ(y, (std::vector<float>{2, 0, 0, 0, 10}));
  std::vector<double> inplace = {1, 2, 3};
  ops::apply_dropout<double>(ctx, inplace, std::vector<std::uint8_t>{0, 1, 1}, 0.5, inplace);
  EXPECT_EQ(inplace, (std::vector<double>{0, 1, 1.5}));
}

}  // namespace
}  // namespace stepwell
