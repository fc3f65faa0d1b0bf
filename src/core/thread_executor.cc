// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// The executor on std::thread, instead of oneTBB's where that is not wanted: the thread sanitizer sees all of it.
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "stepwell/core/context.h"
#include "stepwell/core/error.h"

#include "core/parallel_executor.h"

namespace stepwell {

namespace {

// workers−1 threads that sleep between runs; the calling thread is worker 0. Nothing orders the work of two of them
// within a run: all begin together, each with a task of its own, and share but a relaxed counter. So the sanitizer
// notices two tasks that touch the same memory even if one ended long before the other began.
class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(int workers) : workers_(workers) {
    try {
      for (int worker = 1; worker < workers; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
    } catch (const std::system_error& error) {
      {
        const std::lock_guard lock(mutex_);
        workers_ = static_cast<int>(threads_.size()) + 1;
      }
      stop();
      fail(ErrorCode::Unsupported, "Context::parallel",
           "thread " + std::to_string(threads_.size() + 1) + " of " + std::to_string(workers) + ": " + error.what());
    }
  }
  ~ThreadExecutor() override { stop(); }

  int workers() const override { return workers_; }

  void run(std::int64_t tasks, FunctionRef<void(std::int64_t, int)> body) override {
    body_ = &body;
    tasks_ = tasks;
    next_ = workers_;
    error_ = nullptr;
    meet();
    work(0);
    meet();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void stop() {
    stopping_ = true;
    meet();
    for (std::thread& thread : threads_) thread.join();
  }

  void serve(int worker) {
    while (true) {
      meet();
      if (stopping_) return;
      work(worker);
      meet();
    }
  }

  // Returns once every worker has come here.
  void meet() {
    std::unique_lock lock(mutex_);
    if (++here_ == workers_) {
      here_ = 0;
      ++meetings_;
      all_here_.notify_all();
    } else {
      all_here_.wait(lock, [this, before = meetings_] { return meetings_ != before; });
    }
  }

  // The task of the worker's own number, then what others have not taken; the first exception ends the run and is
  // thrown by run().
  void work(int worker) {
    try {
      for (std::int64_t task = worker; task < tasks_; task = next_.fetch_add(1, std::memory_order_relaxed)) {
        (*body_)(task, worker);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      next_.store(tasks_, std::memory_order_relaxed);
    }
  }

  std::vector<std::thread> threads_;
  // Written by worker 0 while the others wait at a meeting.
  const FunctionRef<void(std::int64_t, int)>* body_ = nullptr;
  std::int64_t tasks_ = 0;
  bool stopping_ = false;
  std::atomic<std::int64_t> next_ = 0;
  // Under the mutex; error_ and workers_ are read without it where nobody writes them.
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::exception_ptr error_;
  int workers_, here_ = 0;
  std::uint64_t meetings_ = 0;
};

}  // namespace

std::unique_ptr<Executor> make_parallel_executor(int threads) { return std::make_unique<ThreadExecutor>(threads); }

}  // namespace stepwell
