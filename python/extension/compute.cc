// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "python/extension/compute.h"

#include <algorithm>
#include <cfenv>
#include <mutex>
#include <vector>

namespace stepwell::python {

namespace {

// Contexts at rest. One computes for one call at a time; two Python threads that compute at once have two.
struct Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<Context>> idle;
  int threads = 0;     // 0: all processors
  int generation = 0;  // contexts of an older one are not kept
};

Pool*& pool() {
  static auto* the_pool = new Pool;  // never destroyed: threads may compute while the process ends
  return the_pool;
}

}  // namespace

void set_threads(int threads) {
  const Context tried = Context::parallel(threads);  // says what is wrong with the number
  std::vector<std::unique_ptr<Context>> old;
  const std::lock_guard lock(pool()->mutex);
  pool()->threads = threads;
  ++pool()->generation;
  old.swap(pool()->idle);
}

int threads() {
  const std::lock_guard lock(pool()->mutex);
  return pool()->threads > 0 ? pool()->threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void after_fork() {
  auto* fresh = new Pool;  // the old one may be locked, and its contexts wait for threads that are gone
  fresh->threads = 1;
  pool() = fresh;
}

void Signals::check() {
  if (stop_.load(std::memory_order_relaxed)) throw Interrupted();
  if (std::this_thread::get_id() != caller_ || std::chrono::steady_clock::now() < next_) return;
  // A handler is any Python code: it must not see the kernels' floating-point mode.
  std::fenv_t kernels;
  std::fegetenv(&kernels);
  std::fesetenv(FE_DFL_ENV);
  bool raised = false;
  {
    const nb::gil_scoped_acquire lock;
    raised = PyErr_CheckSignals() != 0;
  }
  std::fesetenv(&kernels);
  next_ = std::chrono::steady_clock::now() + kPause;
  if (!raised) return;
  stop_.store(true, std::memory_order_relaxed);
  throw Interrupted();
}

BorrowedContext::BorrowedContext(Mode mode) {
  Pool& from = *pool();
  home_ = &from;
  int threads = 0;
  {
    const std::lock_guard lock(from.mutex);
    threads = from.threads;
    generation_ = from.generation;
    if (!from.idle.empty()) {
      context_ = std::move(from.idle.back());
      from.idle.pop_back();
    }
  }
  if (!context_) context_ = std::make_unique<Context>(Context::parallel(threads));
  context_->set_mode(mode);
  context_->set_interrupt(&interrupt_);
}

BorrowedContext::~BorrowedContext() {
  context_->set_interrupt(nullptr);
  Pool& to = *pool();
  const std::lock_guard lock(to.mutex);
  if (home_ == &to && generation_ == to.generation) to.idle.push_back(std::move(context_));
}

}  // namespace stepwell::python
