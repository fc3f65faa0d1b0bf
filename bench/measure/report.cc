// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "bench/measure/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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
  std::string text = fmt::format("{:<16} {:<30} {:>3} {:>10} {:<6} {:>9}  {:<12} others (ours / theirs)\n", "op",
                                 "shape", "thr", "rate", "", "of limit", "limit");
  for (const Record& r : records) {
    text += fmt::format("{:<16} {:<30} {:>3} {:>10.4g} {:<6} {:>9}  {:<12}", r.op, r.shape, r.threads, r.rate, r.unit,
                        r.limit > 0 ? fmt::format("{:.3f}", r.fraction) : "-", r.limit_name);
    for (const ContenderRate& other : r.others) {
      text += fmt::format(" {} {:.4g} ({:.2f})", other.name, other.rate, other.ratio);
    }
    text += '\n';
  }
  return text;
}

std::string json_text(const Limits& limits, const std::vector<Record>& records) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const Record& r : records) {
    Json others = Json::array();
    for (const ContenderRate& other : r.others) {
      others.push_back({{"name", other.name}, {"rate", other.rate}, {"ratio", other.ratio}});
    }
    list.push_back({{"op", r.op},
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
                    {"others", others}});
  }
  const Json json = {{"limits",
                      {{"isa", limits.isa},
                       {"lanes", limits.lanes},
                       {"threads", limits.threads},
                       {"fma_flops", limits.flops(limits.fma)},
                       {"fma_flops_all_threads", limits.flops(limits.fma_all)},
                       {"l2_bytes", limits.l2},
                       {"memory_read_bytes", limits.memory_read},
                       {"memory_copy_bytes", limits.memory_copy}}},
                     {"records", list}};
  return json.dump(2) + "\n";
}

}  // namespace stepwell::bench
