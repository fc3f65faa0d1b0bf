// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// The parallel context; part of stepwell::stepwell only.
#include <string>
#include <thread>

#include "stepwell/core/context.h"
#include "stepwell/core/error.h"

#include "core/parallel_executor.h"

namespace stepwell {

Context Context::parallel(int threads, Mode mode) {
  constexpr int kMostThreads = 1024;
  STEPWELL_CHECK(threads >= 0 && threads <= kMostThreads, "Context::parallel",
                 std::to_string(threads) + " threads, expected 0 (all processors) to " + std::to_string(kMostThreads));
  if (threads == 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  if (threads <= 1) return Context::serial(mode);
  return Context(make_parallel_executor(threads), mode);
}

}  // namespace stepwell
