// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "stepwell/core/segments.h"

namespace stepwell::autograd {

// Segments that own their offsets, for a backward that runs after the caller's offsets are gone.
class SavedSegments {
 public:
  explicit SavedSegments(const Segments& segments) : offsets_{0} {
    for (std::int64_t s = 0; s < segments.count(); ++s) offsets_.push_back(segments.end(s));
  }
  Segments get() const { return Segments::from_offsets(offsets_, offsets_.back()); }

 private:
  std::vector<std::int64_t> offsets_;
};

}  // namespace stepwell::autograd
