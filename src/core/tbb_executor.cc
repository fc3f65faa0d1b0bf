// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// The oneTBB executor; part of stepwell::stepwell only.
#include <string>
#include <thread>

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "stepwell/core/context.h"
#include "stepwell/core/error.h"

namespace stepwell {

namespace {

class TbbExecutor final : public Executor {
 public:
  explicit TbbExecutor(int workers) : workers_(workers), arena_(workers) {}
  int workers() const override { return workers_; }
  void run(std::int64_t tasks, FunctionRef<void(std::int64_t, int)> body) override {
    arena_.execute([&] {
      oneapi::tbb::parallel_for(
          oneapi::tbb::blocked_range<std::int64_t>(0, tasks, 1),
          [&](const oneapi::tbb::blocked_range<std::int64_t>& range) {
            const int worker = oneapi::tbb::this_task_arena::current_thread_index();
            for (std::int64_t task = range.begin(); task < range.end(); ++task) body(task, worker);
          },
          oneapi::tbb::simple_partitioner());
    });
  }

 private:
  int workers_;
  oneapi::tbb::task_arena arena_;
};

}  // namespace

Context Context::parallel(int threads, Mode mode) {
  constexpr int kMostThreads = 1024;
  STEPWELL_CHECK(threads >= 0 && threads <= kMostThreads, "Context::parallel",
                 std::to_string(threads) + " threads, expected 0 (all processors) to " + std::to_string(kMostThreads));
  if (threads == 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  if (threads <= 1) return Context::serial(mode);
  return Context(std::make_unique<TbbExecutor>(threads), mode);
}

}  // namespace stepwell
