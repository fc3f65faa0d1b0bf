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

// workers−1 threads that sleep between runs; the calling thread is worker 0.
class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(int workers) {
    try {
      for (int worker = 1; worker < workers; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
    } catch (const std::system_error& error) {
      stop();
      fail(ErrorCode::Unsupported, "Context::parallel",
           "thread " + std::to_string(threads_.size() + 1) + " of " + std::to_string(workers) + ": " + error.what());
    }
  }
  ~ThreadExecutor() override { stop(); }

  int workers() const override { return static_cast<int>(threads_.size()) + 1; }

  void run(std::int64_t tasks, FunctionRef<void(std::int64_t, int)> body) override {
    {
      const std::lock_guard lock(mutex_);
      body_ = &body;
      tasks_ = tasks;
      next_ = 0;
      error_ = nullptr;
      busy_ = static_cast<int>(threads_.size());
      ++round_;
    }
    wake_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void serve(int worker) {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_) return;
      seen = round_;
      lock.unlock();
      work(worker);
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  // Takes tasks until none is left; the first exception ends the run and is thrown by run().
  void work(int worker) {
    try {
      for (std::int64_t task; (task = next_.fetch_add(1)) < tasks_;) (*body_)(task, worker);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      next_ = tasks_;
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  // Written under the mutex before a round starts, read by the workers during it.
  const FunctionRef<void(std::int64_t, int)>* body_ = nullptr;
  std::int64_t tasks_ = 0;
  std::atomic<std::int64_t> next_ = 0;
  std::exception_ptr error_;
  int busy_ = 0;             // threads still in this round
  std::uint64_t round_ = 0;  // runs so far
  bool stopping_ = false;
};

}  // namespace

std::unique_ptr<Executor> make_parallel_executor(int threads) { return std::make_unique<ThreadExecutor>(threads); }

}  // namespace stepwell
