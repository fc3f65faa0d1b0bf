// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace stepwell::cli {

// From the first call on, Ctrl-C (and SIGTERM) sets the flag returned instead of ending the process; a second one ends
// it at once.
const std::atomic<bool>& interrupt_flag();

}  // namespace stepwell::cli
