// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include <nanobind/nanobind.h>

#include "stepwell/core/context.h"

namespace stepwell::python {

namespace nb = nanobind;

// Threads of every later call; 0: all processors.
void set_threads(int threads);
int threads();
// In a child of fork() none of the parent's workers are left: from now on, calls compute on the calling thread.
void after_fork();

// What ends a computation that Python has interrupted; the interpreter's error is set on the calling thread.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// Lets Python's signal handlers run now and then while one call computes without the interpreter's lock.
class Signals {
 public:
  // Throws Interrupted if a handler raised, on the calling thread soon, on others once it did on the calling one.
  void check();

 private:
  const std::thread::id caller_ = std::this_thread::get_id();
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kPause;
  std::atomic<bool> stop_{false};
  static constexpr std::chrono::milliseconds kPause{50};
};

// A context of its own for one call, with scratch memory from earlier ones.
class BorrowedContext {
 public:
  explicit BorrowedContext(Mode mode);
  ~BorrowedContext();
  BorrowedContext(const BorrowedContext&) = delete;
  BorrowedContext& operator=(const BorrowedContext&) = delete;
  Context& operator*() const { return *context_; }

 private:
  std::unique_ptr<Context> context_;
  const void* home_;  // the pool it goes back to
  int generation_ = 0;
  Signals signals_;
  std::function<void()> interrupt_ = [this] { signals_.check(); };
};

// work(ctx) without the interpreter's lock, stopped by Ctrl-C.
template <class F>
auto compute(Mode mode, F&& work) {
  try {
    const nb::gil_scoped_release unlocked;
    const BorrowedContext context(mode);
    return std::forward<F>(work)(*context);
  } catch (const Interrupted&) {
    throw nb::python_error();
  }
}

}  // namespace stepwell::python
