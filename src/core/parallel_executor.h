// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "stepwell/core/context.h"

namespace stepwell {

// An executor of `threads` ≥ 2 workers, the calling thread among them; an exception of a task reaches the caller of
// run(). Defined by tbb_executor.cc or thread_executor.cc (STEPWELL_WITH_TBB).
std::unique_ptr<Executor> make_parallel_executor(int threads);

}  // namespace stepwell
