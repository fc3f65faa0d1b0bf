// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/flush_to_zero.h"

#include <cfenv>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

#include "stepwell/core/context.h"

namespace stepwell {
namespace {

// Whether results and operands below the smallest normal number are 0 here and now.
struct Flushes {
  bool results, operands;
  bool operator==(const Flushes&) const = default;
};
Flushes flushes() {
  volatile float smallest = std::numeric_limits<float>::min(), denormal = std::numeric_limits<float>::denorm_min();
  volatile float half = smallest * 0.5f, back = denormal * 0x1p100f;
  return {half == 0, back == 0};
}
constexpr Flushes kOff{false, false}, kOn{true, true};

TEST(FlushToZero, IsSetWhileItLivesAndNests) {
  ASSERT_EQ(flushes(), kOff);
  {
    FlushToZero outer;
    EXPECT_EQ(flushes(), kOn);
    {
      FlushToZero inner;
    }
    EXPECT_EQ(flushes(), kOn);
  }
  EXPECT_EQ(flushes(), kOff);
}

TEST(FlushToZero, IsRestoredWhenATaskThrows) {
  for (const int threads : {1, 2}) {
    Context ctx = Context::parallel(threads);
    auto failing = [](std::int64_t, Arena&) {
      EXPECT_EQ(flushes(), kOn);
      throw std::runtime_error("stop");
    };
    EXPECT_THROW(ctx.parallel_for(8, failing), std::runtime_error);
    EXPECT_EQ(flushes(), kOff) << threads << " threads";
  }
}

TEST(FlushToZero, IsSetInEveryTaskOfEveryThread) {
  Context ctx = Context::parallel(3);
  std::vector<int> on(100);
  ctx.parallel_for(100, [&](std::int64_t task, Arena&) { on[static_cast<std::size_t>(task)] = flushes() == kOn; });
  EXPECT_EQ(on, std::vector<int>(100, 1));
  EXPECT_EQ(flushes(), kOff);
}

TEST(FlushToZero, LeavesTheCallersRoundingAndExceptionFlagsAlone) {
  std::feclearexcept(FE_ALL_EXCEPT);
  std::fesetround(FE_UPWARD);
  {
    FlushToZero mode;
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    std::feraiseexcept(FE_DIVBYZERO);
  }
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  EXPECT_TRUE(std::fetestexcept(FE_DIVBYZERO));
  std::fesetround(FE_TONEAREST);
  std::feclearexcept(FE_ALL_EXCEPT);
  EXPECT_EQ(flushes(), kOff);
}

}  // namespace
}  // namespace stepwell
