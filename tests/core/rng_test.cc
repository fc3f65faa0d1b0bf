// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/rng.h"

#include <cmath>
#include <set>
#include <vector>

#include <Random123/philox.h>
#include <gtest/gtest.h>

#undef philox4x32  // Random123 has a macro of our function's name

namespace stepwell {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(Philox, PublishedVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EqualsRandom123) {
  std::uint64_t state = 7;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t a = splitmix64(state), b = splitmix64(state), k = splitmix64(state);
    const Words counter = {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(a >> 32),
                           static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(b >> 32)};
    const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32)};
    r123::Philox4x32 oracle;
    const auto expected = oracle({{counter[0], counter[1], counter[2], counter[3]}}, {{key[0], key[1]}});
    EXPECT_EQ(philox4x32(counter, key), (Words{expected[0], expected[1], expected[2], expected[3]}));
  }
}

TEST(SplitMix64, PublishedVectors) {
  std::uint64_t state = 1234567;
  for (const std::uint64_t expected : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                       4593380528125082431u, 16408922859458223821u}) {
    EXPECT_EQ(splitmix64(state), expected);
  }
}

TEST(SplitMix64, FirstOutputsOfTwoStates) {
  std::uint64_t zero = 0, forty_two = 42;
  for (const std::uint64_t expected :
       {0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u, 0x06c45d188009454fu, 0xf88bb8a8724c81ecu}) {
    EXPECT_EQ(splitmix64(zero), expected);
  }
  for (const std::uint64_t expected :
       {0xbdd732262feb6e95u, 0x28efe333b266f103u, 0x47526757130f9f52u, 0x581ce1ff0e4ae394u}) {
    EXPECT_EQ(splitmix64(forty_two), expected);
  }
}

TEST(HashName, PublishedVectorsOfFnv1a) {
  EXPECT_EQ(hash_name(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash_name("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(hash_name("foobar"), 0x85944171f73967e8u);
}

TEST(InverseNormalCdf, InvertsTheDistributionFunction) {
  EXPECT_EQ(inverse_normal_cdf(0.5), 0);
  EXPECT_NEAR(inverse_normal_cdf(0.975), 1.959963984540054, 1e-15);
  EXPECT_NEAR(inverse_normal_cdf(0x1p-53), -8.209536151601387, 1e-14);
  for (double p = 0x1p-53; p < 0.5; p *= 1.07) {
    const double x = inverse_normal_cdf(p);
    EXPECT_NEAR(0.5 * std::erfc(-x / std::sqrt(2.0)) / p, 1, 1e-13) << p;
    if (p > 1e-6) {
      EXPECT_NEAR(inverse_normal_cdf(1 - p), -x, 1e-9) << p;
    }
  }
}

TEST(Rng, NumbersAreUniformAndNormal) {
  const Rng rng(3, hash_name("test"));
  constexpr std::uint64_t kCount = 100000;
  double sum = 0, squares = 0, normal_sum = 0, normal_squares = 0, normal_fourths = 0;
  std::vector<int> buckets(10);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double u = rng.uniform(i), z = rng.normal(i);
    EXPECT_TRUE(u >= 0 && u < 1);
    sum += u;
    squares += u * u;
    normal_sum += z;
    normal_squares += z * z;
    normal_fourths += z * z * z * z;
    ++buckets[rng.below(i, 10)];
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.004);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.004);
  EXPECT_NEAR(normal_sum / kCount, 0, 0.013);
  EXPECT_NEAR(normal_squares / kCount, 1, 0.02);
  EXPECT_NEAR(normal_fourths / kCount, 3, 0.15);
  for (const int count : buckets) EXPECT_NEAR(count, kCount / 10, 400);
}

TEST(Rng, BelowIsTheHighHalfOfTheProduct) {
  const Rng rng(1);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(rng.below(i, 1), 0u);
    EXPECT_EQ(rng.below(i, std::uint64_t{1} << 32), rng.bits(i) >> 32);
    EXPECT_EQ(rng.below(i, std::uint64_t{1} << 63), rng.bits(i) >> 1);
    EXPECT_LT(rng.below(i, 0xFFFFFFFFFFFFFFFFu), 0xFFFFFFFFFFFFFFFFu);
  }
}

TEST(Rng, EveryAddressHasItsOwnNumber) {
  std::set<std::uint64_t> seen;
  int count = 0;
  const auto add = [&](const Rng& rng) {
    for (std::uint64_t i = 0; i < 10; ++i, ++count) seen.insert(rng.bits(i));
    for (const std::uint64_t i : {std::uint64_t{1} << 33, ~std::uint64_t{0}}) seen.insert(rng.bits(i)), ++count;
  };
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40}) {
    const Rng root(seed);
    add(root);
    add(root.stream("a"));
    add(root.stream("b"));
    add(root.stream("a").stream("b"));
    add(root.stream("b").stream("a"));
    add(root.stream(0));
    add(root.stream(1));
    add(root.stream(0).stream(1));
    add(root.stream(1).stream(0));
    add(root.stream("a").stream(0));
    add(root.stream(0).stream("a"));
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(Rng(4).stream("a").purpose(), hash_name("a"));
}

TEST(Rng, TensorsHoldTheNumbersOfTheirPositions) {
  const Rng rng = Rng(9).stream("weight");
  const Tensor uniform = rng.uniform({3, 7}, -2, 3, DType::F64), narrow = rng.uniform({3, 7}, -2, 3);
  const Tensor normal = rng.normal({21}, 1, 0.5, DType::F64);
  for (std::int64_t i = 0; i < 21; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    EXPECT_EQ(uniform.at(i), rng.uniform(index, -2, 3));
    EXPECT_EQ(narrow.at(i), static_cast<double>(static_cast<float>(uniform.at(i))));
    EXPECT_EQ(normal.at(i), 1 + 0.5 * rng.normal(index));
  }
  EXPECT_EQ(rng.uniform({0, 3}, 0, 1).numel(), 0);
  EXPECT_THROW(rng.uniform({2}, 0, 1, DType::I64), Error);
}

// The same bits on every machine: what a seed means.
TEST(Rng, FrozenValues) {
  const Rng rng = Rng(42).stream("layers.0").stream(7);
  EXPECT_EQ(rng.bits(0), 9837123045041318361u);
  EXPECT_EQ(rng.bits(1000), 11248930856563786623u);
  EXPECT_EQ(rng.normal(1), -0x1.5b3740e72922dp+0);
  EXPECT_EQ(inverse_normal_cdf(1e-9), -0x1.7fdc11f44b5a7p+2);
}

}  // namespace
}  // namespace stepwell
