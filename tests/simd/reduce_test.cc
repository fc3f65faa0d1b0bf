// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// The 16-lane sum and dot product: the order the header states, to the bit, on every instruction set.
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/simd/every_isa.h"
#include "tests/simd/vector_functions.h"

namespace stepwell::simd {
namespace {

template <class T>
std::vector<T> numbers(std::int64_t n, unsigned start) {
  std::mt19937_64 generator(start);
  std::vector<T> x;
  for (std::int64_t i = 0; i < n; ++i)
    x.push_back(static_cast<T>(static_cast<double>(generator() >> 11) * 0x1p-52 - 1));
  return x;
}

template <class T>
T fold(std::vector<T> lanes) {
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

template <class T>
class Reduce : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Reduce, Types);

TYPED_TEST(Reduce, SumAndDotFollowTheStatedOrder) {
  using T = TypeParam;
  std::vector<std::int64_t> lengths = {1000, 4099};
  for (std::int64_t n = 0; n <= 70; ++n) lengths.push_back(n);
  for (const std::int64_t n : lengths) {
    const auto x = numbers<T>(n, 1), y = numbers<T>(n, 2);
    std::vector<T> sums(16), products(16);
    for (std::size_t i = 0; i < x.size(); ++i) {
      sums[i % 16] += x[i];
      products[i % 16] = std::fma(x[i], y[i], products[i % 16]);
    }
    for_every_isa([&](Isa isa) {
      EXPECT_EQ(sum_of(x.data(), n), fold(sums)) << n << isa_name(isa);
      if (has_fma(isa)) {
        EXPECT_EQ(dot_of(x.data(), y.data(), n), fold(products)) << n << isa_name(isa);
      } else {
        EXPECT_NEAR(dot_of(x.data(), y.data(), n), fold(products),
                    static_cast<double>(n) * std::numeric_limits<T>::epsilon());
      }
    });
  }
}

TYPED_TEST(Reduce, NaNAndInfinityComeThrough) {
  using T = TypeParam;
  for_every_isa([&](Isa) {
    for (const std::int64_t at : {0, 15, 16, 36}) {
      auto x = numbers<T>(37, 3);
      const auto ones = std::vector<T>(37, T{1});
      x[static_cast<std::size_t>(at)] = std::numeric_limits<T>::infinity();
      EXPECT_EQ(sum_of(x.data(), 37), std::numeric_limits<T>::infinity());
      EXPECT_EQ(dot_of(x.data(), ones.data(), 37), std::numeric_limits<T>::infinity());
      x[static_cast<std::size_t>(at)] = std::numeric_limits<T>::quiet_NaN();
      EXPECT_TRUE(std::isnan(sum_of(x.data(), 37)));
      EXPECT_TRUE(std::isnan(dot_of(ones.data(), x.data(), 37)));
    }
  });
}

}  // namespace
}  // namespace stepwell::simd
