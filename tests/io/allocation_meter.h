// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace stepwell {

// Measures the most heap memory, in bytes beyond what was held at construction, that operator new held at once during
// its lifetime, over all threads. One at a time.
class AllocationMeter {
 public:
  AllocationMeter();
  std::int64_t peak() const;

 private:
  std::int64_t start_;
};

}  // namespace stepwell
