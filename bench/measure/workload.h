// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepwell/core/context.h"

#include "bench/measure/limits.h"

namespace stepwell::bench {

// What bounds a workload from above.
enum class Bound {
  Fma,         // f32 vector operations on the multiply-add ports ("slots")
  MemoryRead,  // bytes streamed from memory
  MemoryCopy,  // bytes rewritten in memory
  L2,          // bytes rewritten in L2
  Yardstick,   // another piece of work for the same units, timed beside it
  None,        // nothing simple does
};

// A row-major f32 product as BLAS has it, for contenders that offer nothing else.
struct Gemm {
  bool transpose_a, transpose_b;
  std::int64_t M, N, K;
  const float *a, *b;
  float* c;
};

// One op at one shape, ready to run again and again on buffers of its own.
struct Workload {
  std::string unit;  // "GF/s", "tok/s"
  double units = 0;  // of work in one call
  Bound bound = Bound::Fma;
  double cost = 0;  // of one call, in what the bound counts
  std::function<void(Context&)> run;
  std::function<void(Context&)> yardstick;
  std::string yardstick_name;
  std::optional<Gemm> gemm;  // the same work for others
};

// A row of the table of workloads: made only when it is measured.
struct Case {
  std::string op;     // "matmul"
  std::string shape;  // "ABt 64 x 128 x 128"
  std::function<Workload()> make;
};

// Every workload there is, by op; the one place that lists them.
std::vector<Case> all_cases();

// Somebody else's implementation of a workload's Gemm.
struct Contender {
  std::string name;
  std::function<void(const Gemm&)> run;
};

struct ContenderRate {
  std::string name;
  double rate = 0;
  double ratio = 0;  // ours / theirs, median over the rounds
};

struct Record {
  std::string op, shape, unit;
  int threads = 1, rounds = 0;
  double rate = 0, slowest = 0, fastest = 0;  // units a second: median, least and most of the rounds
  std::string limit_name;
  double limit = 0;                 // units a second; 0: not measured
  double fraction = 0;              // rate / limit, both of the same round; median
  double speedup = 0;               // rate / rate with one thread, both of the same round; median; 0: one thread
  double first_call = 0, call = 0;  // seconds of the very first call with its buffers, and of a later one (median)
  std::vector<ContenderRate> others;
};

struct MeasureOptions {
  int rounds = 7;
  double slice = 0.05;  // seconds of each contender in each round
};

// Rounds of: the limit, ours, ours with one thread (if there are more), each contender in turn. CPU time with one
// thread, wall time with more.
Record measure(const Case& row, Context& ctx, const Limits& limits, const std::vector<Contender>& others,
               const MeasureOptions& options);

}  // namespace stepwell::bench
