// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepwell/core/context.h"

namespace stepwell::bench {

// What this machine can do at most, measured with the instruction set in use.
struct Limits {
  std::string isa;
  int lanes = 0;  // of one f32 vector
  int threads = 1;
  double fma = 0;      // f32 vector multiply-adds a second, one thread: two a clock on every processor we know
  double fma_all = 0;  // the same by all threads at once: threads that share a core share its ports
  double l2 = 0;       // bytes a second read, and as many written, rewriting an array that stays in L2; one thread
  std::vector<double> memory_read;  // bytes a second with 1, 2, … threads, each reading one stream; empty: not measured
  std::vector<double> memory_copy;  // the same for copies: bytes read, and as many written

  // Floating-point operations a second of so many vector multiply-adds.
  double flops(double vectors) const { return vectors * 2 * lanes; }
};

// Seconds since some moment: CPU time of the calling thread, or of the clock on the wall.
double thread_seconds();
double wall_seconds();

// One measurement of a few milliseconds each, by all threads of the context together: vector multiply-adds, and bytes
// each way, a second. CPU time with one thread, wall time with more.
double measure_fma(Context& ctx);
double measure_l2(Context& ctx);

// Medians of several measurements. With `memory`, streams over arrays far larger than the caches, for 1 to `threads`
// threads (about a second).
Limits measure_limits(int threads, bool memory);

double median(std::vector<double> values);

}  // namespace stepwell::bench
