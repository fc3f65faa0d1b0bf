// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/context.h"

#include <atomic>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/tensor.h"

namespace stepwell {
namespace {

TEST(Context, SerialRunsTasksInOrderOnTheCallingThread) {
  Context ctx = Context::serial();
  EXPECT_EQ(ctx.threads(), 1);
  EXPECT_EQ(ctx.mode(), Mode::Exact);
  std::vector<std::int64_t> order;
  ctx.parallel_for(5, [&](std::int64_t task, Arena&) { order.push_back(task); });
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  ctx.parallel_for(0, [&](std::int64_t, Arena&) { FAIL() << "no task to run"; });
}

TEST(Context, ParallelForRunsEveryTaskOnceForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 4}) {
    Context ctx = Context::parallel(threads);
    EXPECT_EQ(ctx.threads(), threads);
    for (const std::int64_t tasks : {0, 1, 2, 5, 333}) {
      std::vector<int> runs(static_cast<std::size_t>(tasks));
      ctx.parallel_for(tasks, [&](std::int64_t task, Arena& scratch) {
        *scratch.allocate<int>(1) = 1;
        ++runs[static_cast<std::size_t>(task)];
      });
      EXPECT_EQ(runs, std::vector<int>(static_cast<std::size_t>(tasks), 1)) << threads << " threads";
    }
  }
}

TEST(Context, ScratchOfATaskIsGivenBackAfterIt) {
  Context ctx = Context::serial();
  std::vector<void*> places;
  ctx.parallel_for(4, [&](std::int64_t, Arena& scratch) { places.push_back(scratch.allocate(100)); });
  for (void* p : places) EXPECT_EQ(p, places[0]);
  // The caller's own scratch is another one.
  ArenaScope scope(ctx.scratch());
  EXPECT_NE(ctx.scratch().allocate(100), places[0]);
}

TEST(Context, InterruptIsAskedForEveryTaskAndPieceOfScratchAndItsExceptionEndsTheOp) {
  for (const int threads : {1, 2}) {
    Context ctx = Context::parallel(threads);
    std::atomic<int> calls{0}, done{0};
    std::function<void()> interrupt = [&] { ++calls; };
    ctx.set_interrupt(&interrupt);
    ctx.parallel_for(5, [](std::int64_t, Arena& scratch) { scratch.allocate(1); });
    EXPECT_EQ(calls, 10);
    interrupt = [&] { throw std::runtime_error("stop"); };
    EXPECT_THROW(ctx.parallel_for(5, [&](std::int64_t, Arena&) { ++done; }), std::runtime_error);
    EXPECT_EQ(done, 0);
    ctx.set_interrupt(nullptr);
    ctx.parallel_for(5, [&](std::int64_t, Arena& scratch) {
      scratch.allocate(1);
      ++done;
    });
    EXPECT_EQ(done, 5);
  }
}

TEST(Context, ThrowsWhatATaskThrowsAndStaysUsable) {
  for (const int threads : {1, 2}) {
    Context ctx = Context::parallel(threads);
    auto failing = [](std::int64_t task, Arena& scratch) {
      scratch.allocate(1000);
      if (task == 3) throw std::runtime_error("task 3");
    };
    EXPECT_THROW(ctx.parallel_for(10, failing), std::runtime_error);
    std::vector<int> runs(10);
    ctx.parallel_for(10, [&](std::int64_t task, Arena&) { ++runs[static_cast<std::size_t>(task)]; });
    EXPECT_EQ(runs, std::vector<int>(10, 1));
  }
}

TEST(Context, MovesWithItsArenas) {
  Context a = Context::serial(Mode::Fast);
  void* scratch = a.scratch().allocate(1);
  Context b = std::move(a);
  EXPECT_EQ(b.mode(), Mode::Fast);
  EXPECT_NE(b.scratch().allocate(1), scratch);
  b.set_mode(Mode::Exact);
  EXPECT_EQ(b.mode(), Mode::Exact);
}

TEST(TensorScope, TensorsComeFromTheArenaAndTheirMemoryIsReused) {
  Context ctx = Context::serial();
  EXPECT_EQ(ctx.tensor_arena(), nullptr);
  void* first = nullptr;
  for (int step = 0; step < 4; ++step) {
    TensorScope scope(ctx);
    ASSERT_NE(ctx.tensor_arena(), nullptr);
    const Tensor a = Tensor::empty(ctx, {10, 3}, DType::F32), b = Tensor::zeros(ctx, {5}, DType::F64);
    const Tensor copy = a.slice(1, 0, 2).contiguous(ctx), clone = b.clone(ctx);
    if (step == 0) first = a.raw();
    EXPECT_EQ(a.raw(), first) << "step " << step;
    EXPECT_EQ(b.at(4), 0);
    EXPECT_TRUE(copy.is_contiguous());
    EXPECT_FALSE(clone.shares_storage(b));
  }
  EXPECT_EQ(ctx.tensor_arena(), nullptr);
}

TEST(TensorScope, Nests) {
  Context ctx = Context::serial();
  TensorScope outer(ctx);
  const Tensor kept = Tensor::zeros(ctx, {100}, DType::F32);
  {
    TensorScope inner(ctx);
    Tensor::empty(ctx, {100}, DType::F32).fill(7);
  }
  EXPECT_NE(ctx.tensor_arena(), nullptr);
  const Tensor next = Tensor::empty(ctx, {100}, DType::F32);
  next.fill(9);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(kept.at(i), 0);
}

}  // namespace
}  // namespace stepwell
