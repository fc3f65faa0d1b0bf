// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "bench/measure/workload.h"

#include <algorithm>

namespace stepwell::bench {

namespace {

double now(bool one_thread) { return one_thread ? thread_seconds() : wall_seconds(); }

// Calls a second of `call`, repeated for at least `slice` seconds.
template <class Call>
double calls_per_second(bool one_thread, double slice, Call&& call) {
  std::int64_t calls = 0, batch = 1;
  const double start = now(one_thread);
  for (;;) {
    for (std::int64_t i = 0; i < batch; ++i) call();
    calls += batch;
    const double seconds = now(one_thread) - start;
    if (seconds >= slice) return static_cast<double>(calls) / seconds;
    if (seconds < slice / 8) batch *= 2;
  }
}

// Units of work a second that the bound allows, with as many threads as the context has; 0 if that was not measured.
double limit_of(const Workload& work, Context& ctx, const Limits& limits, double slice) {
  const double calls = work.units / work.cost;
  switch (work.bound) {
    case Bound::Fma: return measure_fma(ctx) * calls;
    case Bound::L2: return measure_l2(ctx) * calls;
    case Bound::MemoryRead:
    case Bound::MemoryCopy: {
      const std::size_t index = static_cast<std::size_t>(ctx.threads() - 1);
      const auto& streams = work.bound == Bound::MemoryRead ? limits.memory_read : limits.memory_copy;
      return index < streams.size() ? streams[index] * calls : 0;
    }
    case Bound::Yardstick:
      return work.units * calls_per_second(ctx.threads() == 1, slice, [&] { work.yardstick(ctx); });
    case Bound::None: return 0;
  }
  return 0;
}

std::string bound_name(const Workload& work) {
  switch (work.bound) {
    case Bound::Fma: return "FMA peak";
    case Bound::L2: return "L2 rewrite";
    case Bound::MemoryRead: return "memory read";
    case Bound::MemoryCopy: return "memory copy";
    case Bound::Yardstick: return work.yardstick_name;
    case Bound::None: return "";
  }
  return "";
}

}  // namespace

Record measure(const Case& row, Context& ctx, const Limits& limits, const std::vector<Contender>& others,
               const MeasureOptions& options) {
  const Workload work = row.make();
  const bool one_thread = ctx.threads() == 1;
  std::vector<double> rates, limit_rates, fractions, speedups;
  Context one = Context::serial();
  const std::size_t contenders = work.gemm ? others.size() : 0;
  std::vector<std::vector<double>> other_rates(contenders), ratios(contenders);
  const double start = now(one_thread);
  work.run(ctx);
  const double first_call = now(one_thread) - start;
  for (std::size_t i = 0; i < contenders; ++i) others[i].run(*work.gemm);
  for (int round = 0; round < options.rounds; ++round) {
    const double limit = limit_of(work, ctx, limits, options.slice);
    const double rate = work.units * calls_per_second(one_thread, options.slice, [&] { work.run(ctx); });
    if (!one_thread) {
      const auto call = [&] { work.run(one); };
      speedups.push_back(rate / (work.units * calls_per_second(false, options.slice, call)));
    }
    limit_rates.push_back(limit);
    rates.push_back(rate);
    fractions.push_back(limit > 0 ? rate / limit : 0);
    for (std::size_t i = 0; i < contenders; ++i) {
      const auto call = [&] { others[i].run(*work.gemm); };
      other_rates[i].push_back(work.units * calls_per_second(one_thread, options.slice, call));
      ratios[i].push_back(rate / other_rates[i].back());
    }
  }
  Record record;
  record.op = row.op;
  record.shape = row.shape;
  record.unit = work.unit;
  record.threads = ctx.threads();
  record.rounds = options.rounds;
  record.rate = median(rates);
  record.slowest = *std::min_element(rates.begin(), rates.end());
  record.fastest = *std::max_element(rates.begin(), rates.end());
  record.limit_name = bound_name(work);
  record.limit = median(limit_rates);
  record.fraction = median(fractions);
  record.speedup = median(speedups);
  record.first_call = first_call;
  record.call = work.units / record.rate;
  for (std::size_t i = 0; i < contenders; ++i) {
    record.others.push_back({others[i].name, median(other_rates[i]), median(ratios[i])});
  }
  return record;
}

}  // namespace stepwell::bench
