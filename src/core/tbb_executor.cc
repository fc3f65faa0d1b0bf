// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// The executor on oneTBB.
#include <optional>
#include <thread>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "stepwell/core/context.h"

#include "core/parallel_executor.h"

namespace stepwell {

namespace {

class TbbExecutor final : public Executor {
 public:
  explicit TbbExecutor(int workers) : workers_(workers), arena_(workers) {
    // oneTBB offers as many threads as there are processors. More must be asked for; fewer never is, since the limit
    // holds for the whole process.
    if (workers > static_cast<int>(std::thread::hardware_concurrency())) {
      more_.emplace(oneapi::tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(workers));
    }
  }
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
  std::optional<oneapi::tbb::global_control> more_;
  oneapi::tbb::task_arena arena_;
};

}  // namespace

std::unique_ptr<Executor> make_parallel_executor(int threads) { return std::make_unique<TbbExecutor>(threads); }

}  // namespace stepwell
