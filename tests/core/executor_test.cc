// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// The parallel executor of this build: oneTBB's, or the one on std::thread (STEPWELL_WITH_TBB).
#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/context.h"
#include "stepwell/core/error.h"

#include "core/parallel_executor.h"

namespace stepwell {
namespace {

TEST(ParallelExecutor, RunsEveryTaskOnceOnAWorkerOfItsOwn) {
  constexpr int kWorkers = 4;
  const auto executor = make_parallel_executor(kWorkers);
  ASSERT_EQ(executor->workers(), kWorkers);
  for (const std::int64_t tasks : {0, 1, 2, 3, 4, 5, 97, 1000}) {
    for (int round = 0; round < 20; ++round) {
      std::vector<int> runs(static_cast<std::size_t>(tasks));
      std::array<std::atomic<int>, kWorkers> active{};
      std::atomic<bool> shared = false;
      auto body = [&](std::int64_t task, int worker) {
        ASSERT_TRUE(worker >= 0 && worker < kWorkers);
        if (active[static_cast<std::size_t>(worker)]++ != 0) shared = true;
        ++runs[static_cast<std::size_t>(task)];
        --active[static_cast<std::size_t>(worker)];
      };
      executor->run(tasks, body);
      EXPECT_EQ(runs, std::vector<int>(static_cast<std::size_t>(tasks), 1));
      EXPECT_FALSE(shared) << "two tasks at once with one worker number";
    }
  }
}

TEST(ParallelExecutor, HandsAnExceptionOfATaskToTheCallerAndGoesOn) {
  const auto executor = make_parallel_executor(3);
  for (int round = 0; round < 20; ++round) {
    auto failing = [](std::int64_t task, int) {
      if (task == 7) throw std::runtime_error("task 7");
    };
    EXPECT_THROW(executor->run(50, failing), std::runtime_error);
    std::atomic<int> count = 0;
    auto counting = [&](std::int64_t, int) { ++count; };
    executor->run(50, counting);
    EXPECT_EQ(count, 50);
  }
}

TEST(ParallelContext, ChecksItsNumberOfThreads) {
  EXPECT_THROW(Context::parallel(-1), Error);
  EXPECT_THROW(Context::parallel(100000), Error);
  EXPECT_EQ(Context::parallel(1).threads(), 1);
  EXPECT_EQ(Context::parallel(3).threads(), 3);
  EXPECT_GE(Context::parallel().threads(), 1);
}

TEST(ParallelContext, GivesEachTaskScratchOfItsOwn) {
  Context ctx = Context::parallel(4);
  std::vector<int> ok(200);
  ctx.parallel_for(200, [&](std::int64_t task, Arena& scratch) {
    int* mine = scratch.allocate<int>(1000);
    for (int i = 0; i < 1000; ++i) mine[i] = static_cast<int>(task) + i;
    bool same = true;
    for (int i = 0; i < 1000; ++i) same = same && mine[i] == static_cast<int>(task) + i;
    ok[static_cast<std::size_t>(task)] = same;
  });
  EXPECT_EQ(ok, std::vector<int>(200, 1));
}

}  // namespace
}  // namespace stepwell
