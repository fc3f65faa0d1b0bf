// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace stepwell {

// Sets flush-to-zero and denormals-are-zero on this thread for its lifetime and restores the caller's floating-point
// mode on every exit. Context::parallel_for holds one in each task; ops that compute inline hold one themselves.
class FlushToZero {
 public:
  FlushToZero() noexcept;
  ~FlushToZero();
  FlushToZero(const FlushToZero&) = delete;
  FlushToZero& operator=(const FlushToZero&) = delete;

 private:
  std::uint64_t saved_;
};

}  // namespace stepwell
