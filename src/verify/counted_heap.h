// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Whoever links stepwell_counted_heap has every operator new and delete of the program replaced by ones that count. It
// is for programs (the command-line tool, test binaries) and never part of a library.
namespace stepwell::verify {

// Calls of operator new so far, over all threads; what verify::Options asks for.
std::int64_t heap_allocations();

// The most bytes beyond what was held at its construction that operator new held at once since, over all threads. One
// at a time.
class HeapMeter {
 public:
  HeapMeter();
  std::int64_t peak() const;

 private:
  std::int64_t start_;
};

}  // namespace stepwell::verify
