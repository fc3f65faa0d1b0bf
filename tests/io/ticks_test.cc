// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "io/ticks.h"

#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "stepwell/io/chart.h"

namespace stepwell::io {
namespace {

using Labels = std::vector<std::string>;

TEST(Ticks, AreRoundNumbers) {
  EXPECT_EQ(linear_ticks(0, 1, 6, true).labels, (Labels{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
  EXPECT_EQ(linear_ticks(1, 600, 7, false).labels, (Labels{"100", "200", "300", "400", "500", "600"}));
  EXPECT_EQ(linear_ticks(-0.03, 0.052, 6, true).labels, (Labels{"−0.04", "−0.02", "0", "0.02", "0.04", "0.06"}));
  EXPECT_EQ(linear_ticks(0, 4100, 5, true).labels, (Labels{"0", "2,000", "4,000", "6,000"}));
  EXPECT_EQ(linear_ticks(-2e7, 3e7, 6, true).labels, (Labels{"−2×10⁷", "−10⁷", "0", "10⁷", "2×10⁷", "3×10⁷"}));
  EXPECT_EQ(linear_ticks(0, 3e-9, 4, true).labels, (Labels{"0", "10⁻⁹", "2×10⁻⁹", "3×10⁻⁹"}));
  EXPECT_EQ(linear_ticks(1e9, 1e9 + 2, 3, false).labels, (Labels{"1,000,000,000", "1,000,000,001", "1,000,000,002"}));
}

TEST(Ticks, OfLogarithmicAxesArePowersOfTen) {
  EXPECT_EQ(log_ticks(0.03, 0.9, 6).labels, (Labels{"0.02", "0.05", "0.1", "0.2", "0.5", "1"}));
  EXPECT_EQ(log_ticks(1, 1e5, 6).labels, (Labels{"1", "10", "100", "1,000", "10,000", "100,000"}));
  EXPECT_EQ(log_ticks(1e-12, 1, 4).labels, (Labels{"10⁻¹²", "10⁻⁹", "10⁻⁶", "0.001", "1"}));
  EXPECT_EQ(log_ticks(3, 3, 6).labels, (Labels{"2", "5"}));
}

// Whatever the values are: increasing, different labels, and the range holds the values.
TEST(Ticks, HoldEveryRange) {
  const double extremes[] = {-1.7e308, -3e7, -1, -1e-9, -1e-320, 0,   1e-320, 1e-300,
                             2e-9,     0.1,  1,  1.5,   77,      1e6, 1e300,  1.7e308};
  for (const double low : extremes) {
    for (const double high : extremes) {
      if (high < low) continue;
      for (const bool widen : {false, true}) {
        const Ticks t = linear_ticks(low, high, 6, widen);
        EXPECT_LT(t.low, t.high) << low << " " << high;
        const double slack = 1e-8 * (t.high - t.low);  // less than anybody can see
        EXPECT_LE(t.low - slack, std::fmax(low, -1e300));
        EXPECT_GE(t.high + slack, std::fmin(high, 1e300));
        EXPECT_TRUE(t.at.size() >= 2 && t.at.size() <= 13) << low << " " << high << ": " << t.at.size();
        EXPECT_EQ(std::set<std::string>(t.labels.begin(), t.labels.end()).size(), t.labels.size())
            << low << " " << high;
      }
      if (low <= 0) continue;
      const Ticks t = log_ticks(low, high, 6);
      EXPECT_LT(t.low, t.high) << low << " " << high;
      EXPECT_TRUE(t.at.size() >= 2 && t.at.size() <= 13) << low << " " << high << ": " << t.at.size();
    }
  }
}

TEST(Ticks, NumbersForPeople) {
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(-0.0), "0");
  EXPECT_EQ(number_text(0.012345), "0.0123");
  EXPECT_EQ(number_text(0.5), "0.5");
  EXPECT_EQ(number_text(12345.678), "12,346");
  EXPECT_EQ(number_text(999.96), "1,000");
  EXPECT_EQ(number_text(-1234567, 2), "−1,234,567");
  EXPECT_EQ(number_text(1.5e-7), "1.5×10⁻⁷");
  EXPECT_EQ(number_text(-1e20), "−10²⁰");
  EXPECT_EQ(number_text(0.91237, 4), "0.9124");
  EXPECT_EQ(number_text(std::nan("")), "–");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "–");
}

}  // namespace
}  // namespace stepwell::io
