// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "simd/large_angle.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace stepwell::simd {
namespace {

// sin x = ±sin r or ±cos r by quadrant.
long double sine_of(const ReducedAngle& angle) {
  const long double r = angle.r;
  const long double value = angle.quadrant % 2 == 0 ? std::sin(r) : std::cos(r);
  return angle.quadrant >= 2 ? -value : value;
}

TEST(LargeAngle, GivesTheSineOfAnyLargeNumber) {
  std::mt19937_64 generator(1);
  for (int i = 0; i < 200000; ++i) {
    const int exponent = 12 + static_cast<int>(generator() % 1012);
    const double x = std::ldexp(1 + static_cast<double>(generator() >> 12) * 0x1p-52, exponent) * (i % 2 ? 1 : -1);
    const ReducedAngle angle = reduce_large_angle(x);
    ASSERT_LE(std::fabs(angle.r), 0.785398163397449);
    ASSERT_LT(angle.quadrant, 4u);
    const long double want = std::sin(static_cast<long double>(x));
    ASSERT_NEAR(static_cast<double>(sine_of(angle) / want), 1, 4e-16) << x;
  }
}

TEST(LargeAngle, KeepsItsDigitsNextToAMultipleOfHalfPi) {
  // The double closest to a multiple of π/2 (Muller, Elementary Functions): the distance is 4.7e-19.
  const double x = 6381956970095103.0 * std::ldexp(1.0, 797);
  const ReducedAngle angle = reduce_large_angle(x);
  EXPECT_EQ(angle.quadrant, 1u);
  EXPECT_NEAR(-angle.r / static_cast<double>(std::cos(static_cast<long double>(x))), 1, 4e-16);
  EXPECT_LT(std::fabs(angle.r), 5e-19);
}

TEST(LargeAngle, IsOddInX) {
  for (const double x : {4097.0, 1e22, 0x1.8p1000, std::numeric_limits<double>::max()}) {
    const ReducedAngle plus = reduce_large_angle(x), minus = reduce_large_angle(-x);
    EXPECT_EQ(minus.r, -plus.r);
    EXPECT_EQ((plus.quadrant + minus.quadrant) % 4, 0u);
  }
}

}  // namespace
}  // namespace stepwell::simd
