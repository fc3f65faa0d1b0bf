// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/segments.h"

#include <string>

#include "stepwell/core/error.h"

namespace stepwell {

Segments Segments::from_offsets(std::span<const std::int64_t> offsets, std::int64_t tokens) {
  const char* where = "cu_seqlens";
  STEPWELL_CHECK(!offsets.empty(), where, "is empty, expected at least the offset 0");
  STEPWELL_CHECK(offsets.front() == 0, where, "starts at " + std::to_string(offsets.front()) + ", expected 0");
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    STEPWELL_CHECK(offsets[i] >= offsets[i - 1], where,
                   "entry " + std::to_string(i) + " is " + std::to_string(offsets[i]) + " after " +
                       std::to_string(offsets[i - 1]) + ", expected offsets that never decrease");
  }
  STEPWELL_CHECK(
      offsets.back() == tokens, where,
      "ends at " + std::to_string(offsets.back()) + ", expected the number of tokens, " + std::to_string(tokens));
  return Segments(static_cast<std::int64_t>(offsets.size()) - 1, 0, offsets.data());
}

}  // namespace stepwell
