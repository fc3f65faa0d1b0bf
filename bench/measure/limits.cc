// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "bench/measure/limits.h"

#include <algorithm>
#include <new>

#include <sys/mman.h>
#include <time.h>

#include "stepwell/core/context.h"
#include "stepwell/simd/isa.h"

#include "bench/measure/limits_simd.h"

namespace stepwell::bench {

namespace {

constexpr std::int64_t kFmaRounds = 400'000;
constexpr std::int64_t kL2Count = 64 * 1024;             // 256 KiB: beyond L1 and within L2 of any recent core
constexpr std::int64_t kStreamCount = 96 * 1024 * 1024;  // 384 MiB per array
constexpr int kStreamRounds = 3, kRounds = 7;

double seconds_of(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Results of loops go here, so that no compiler may drop them.
volatile float sink;

// Large arrays in huge pages where the system gives them.
class StreamArray {
 public:
  StreamArray() {
    void* p = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    madvise(p, kBytes, MADV_HUGEPAGE);
    data_ = static_cast<float*>(p);
    std::fill(data_, data_ + kStreamCount, 1.0f);
  }
  ~StreamArray() { munmap(data_, kBytes); }
  StreamArray(const StreamArray&) = delete;
  StreamArray& operator=(const StreamArray&) = delete;
  float* data() const { return data_; }

 private:
  static constexpr std::size_t kBytes = kStreamCount * sizeof(float);
  float* data_;
};

// Bytes a second of `body(begin, count)` run over equal parts by `threads` threads.
template <class Body>
double stream_rate(int threads, Body&& body) {
  Context ctx = Context::parallel(threads);
  std::vector<double> rates;
  for (int round = 0; round < kStreamRounds; ++round) {
    const double start = wall_seconds();
    ctx.parallel_for(threads, [&](std::int64_t task, Arena&) {
      const std::int64_t count = kStreamCount / threads;
      body(task * count, count);
    });
    rates.push_back(static_cast<double>(kStreamCount / threads * threads * 4) / (wall_seconds() - start));
  }
  return median(rates);
}

// Calls of `body(task)` a second, one task for each thread at once.
template <class Body>
double rate_of(Context& ctx, Body&& body) {
  const bool one = ctx.threads() == 1;
  const double start = one ? thread_seconds() : wall_seconds();
  ctx.parallel_for(ctx.threads(), [&](std::int64_t task, Arena&) { body(task); });
  return ctx.threads() / ((one ? thread_seconds() : wall_seconds()) - start);
}

}  // namespace

double thread_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }
double wall_seconds() { return seconds_of(CLOCK_MONOTONIC); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double measure_fma(Context& ctx) {
  return rate_of(ctx, [](std::int64_t) { sink = fma_loop(kFmaRounds); }) * static_cast<double>(kFmaRounds * kFmaChains);
}

double measure_l2(Context& ctx) {
  constexpr int kPasses = 100;
  std::vector<std::vector<float>> arrays(static_cast<std::size_t>(ctx.threads()), std::vector<float>(kL2Count, 1.0f));
  return rate_of(ctx,
                 [&](std::int64_t task) {
                   float* const data = arrays[static_cast<std::size_t>(task)].data();
                   for (int i = 0; i < kPasses; ++i) rewrite(data, kL2Count);
                 }) *
         (4.0 * kL2Count * kPasses);
}

Limits measure_limits(int threads, bool memory) {
  Limits limits;
  limits.isa = simd::isa_name(simd::current_isa());
  limits.lanes = lanes_f32();
  limits.threads = threads;
  Context one = Context::serial(), all = Context::parallel(threads);
  std::vector<double> fma, fma_all, l2;
  for (int i = 0; i < kRounds; ++i) {
    fma.push_back(measure_fma(one));
    fma_all.push_back(measure_fma(all));
    l2.push_back(measure_l2(one));
  }
  limits.fma = median(fma);
  limits.fma_all = median(fma_all);
  limits.l2 = median(l2);
  if (!memory) return limits;
  const StreamArray from, to;
  for (int t = 1; t <= threads; ++t) {
    limits.memory_read.push_back(stream_rate(
        t, [&](std::int64_t begin, std::int64_t count) { sink = read_stream(from.data() + begin, count); }));
    limits.memory_copy.push_back(stream_rate(t, [&](std::int64_t begin, std::int64_t count) {
      copy_stream(from.data() + begin, to.data() + begin, count);
    }));
  }
  return limits;
}

}  // namespace stepwell::bench
