// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "bench/measure/report.h"

#include <utility>

#include <fmt/format.h>

#include "stepwell/io/json.h"

namespace stepwell::bench {

std::string limits_text(const Limits& limits) {
  std::string text = fmt::format(
      "instruction set {} ({} f32 lanes); the limit of an op is what its vectors of that many lanes allow\n"
      "FMA peak {:.1f} GF/s with one thread, {:.1f} GF/s with {}; L2 rewrite {:.1f} GB/s each way\n",
      limits.isa, limits.lanes, limits.flops(limits.fma) * 1e-9, limits.flops(limits.fma_all) * 1e-9, limits.threads,
      limits.l2 * 1e-9);
  for (std::size_t t = 0; t < limits.memory_read.size(); ++t) {
    text += fmt::format("memory, {} thread{}: read {:.1f} GB/s, copy {:.1f} GB/s each way\n", t + 1, t ? "s" : "",
                        limits.memory_read[t] * 1e-9, limits.memory_copy[t] * 1e-9);
  }
  return text;
}

std::string table_text(const std::vector<Record>& records) {
  std::string text =
      fmt::format("{:<16} {:<30} {:>3} {:>10} {:<6} {:>9}  {:<12} {:>9} {:>9} {:>9}  others (ours / theirs)\n", "op",
                  "shape", "thr", "rate", "", "of limit", "limit", "x one thr", "ms/call", "first");
  for (const Record& r : records) {
    text += fmt::format("{:<16} {:<30} {:>3} {:>10.4g} {:<6} {:>9}  {:<12} {:>9} {:>9.3f} {:>9.3f} ", r.op, r.shape,
                        r.threads, r.rate, r.unit, r.limit > 0 ? fmt::format("{:.3f}", r.fraction) : "-", r.limit_name,
                        r.speedup > 0 ? fmt::format("{:.2f}", r.speedup) : "-", r.call * 1e3, r.first_call * 1e3);
    for (const ContenderRate& other : r.others) {
      text += fmt::format(" {} {:.4g} ({:.2f})", other.name, other.rate, other.ratio);
    }
    text += '\n';
  }
  return text;
}

std::string json_text(const Limits& limits, const std::vector<Record>& records) {
  Config::Array list;
  for (const Record& r : records) {
    Config::Array others;
    for (const ContenderRate& other : r.others) {
      others.emplace_back(Config::Object{{"name", other.name}, {"rate", other.rate}, {"ratio", other.ratio}});
    }
    list.emplace_back(Config::Object{{"op", r.op},
                                     {"shape", r.shape},
                                     {"threads", r.threads},
                                     {"rounds", r.rounds},
                                     {"unit", r.unit},
                                     {"rate", r.rate},
                                     {"slowest", r.slowest},
                                     {"fastest", r.fastest},
                                     {"limit", r.limit},
                                     {"limit_name", r.limit_name},
                                     {"fraction", r.fraction},
                                     {"speedup", r.speedup},
                                     {"call_seconds", r.call},
                                     {"first_call_seconds", r.first_call},
                                     {"others", std::move(others)}});
  }
  const auto numbers = [](const std::vector<double>& values) { return Config::Array(values.begin(), values.end()); };
  Config::Object all{{"isa", limits.isa},
                     {"lanes", limits.lanes},
                     {"threads", limits.threads},
                     {"fma_flops", limits.flops(limits.fma)},
                     {"fma_flops_all_threads", limits.flops(limits.fma_all)},
                     {"l2_bytes", limits.l2},
                     {"memory_read_bytes", numbers(limits.memory_read)},
                     {"memory_copy_bytes", numbers(limits.memory_copy)}};
  return io::to_json(Config::Object{{"limits", std::move(all)}, {"records", std::move(list)}}) + "\n";
}

}  // namespace stepwell::bench
