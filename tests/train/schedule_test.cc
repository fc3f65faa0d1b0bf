// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/schedule.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace stepwell::train {
namespace {

TEST(Schedule, WarmsUpLinearlyThenStays) {
  const Schedule s{.peak = 0.5, .warmup = 4, .steps = 10};
  EXPECT_EQ(s.at(0), 0.125);
  EXPECT_EQ(s.at(1), 0.25);
  EXPECT_EQ(s.at(3), 0.5);
  EXPECT_EQ(s.at(4), 0.5);
  EXPECT_EQ(s.at(1000), 0.5);
}

TEST(Schedule, FollowsHalfACosineToItsFinalFraction) {
  const Schedule s{.peak = 2e-3, .warmup = 10, .decay = Decay::Cosine, .steps = 111, .final_fraction = 0.1};
  EXPECT_EQ(s.at(9), 2e-3);
  for (int step = 10; step <= 110; ++step) {
    const double wave = 0.5 * (1 + std::cos(std::numbers::pi * (step - 10) / 100.0));
    EXPECT_NEAR(s.at(step), 2e-3 * (0.1 + 0.9 * wave), 2e-3 * 1e-15) << step;
  }
  EXPECT_NEAR(s.at(60), 2e-3 * 0.55, 1e-18);
  EXPECT_NEAR(s.at(110), 2e-4, 1e-18);
  EXPECT_EQ(s.at(500), s.at(110));
}

TEST(Schedule, HandlesRunsShorterThanTheWarmup) {
  const Schedule s{.peak = 1, .warmup = 100, .decay = Decay::Cosine, .steps = 3};
  EXPECT_EQ(s.at(2), 0.03);
  EXPECT_TRUE(std::isfinite(s.at(200)));
  const Schedule one{.peak = 1, .decay = Decay::Cosine, .steps = 1};
  EXPECT_EQ(one.at(0), 1.0);
}

}  // namespace
}  // namespace stepwell::train
