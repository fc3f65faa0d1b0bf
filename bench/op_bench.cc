// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// Speeds of ops beside this machine's limits and beside other libraries.
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/measure/report.h"
#include "bench/rivals/rivals.h"

namespace {

int run(int argc, char** argv) {
  using namespace stepwell;
  CLI::App app("Speeds of ops beside this machine's limits and beside OpenBLAS, BLIS and oneDNN");
  std::string op, shape, json;
  int threads = 1;
  bench::MeasureOptions options;
  bool streams = false, alone = false;
  app.add_option("--op", op, "Only this op");
  app.add_option("--shape", shape, "Only shapes that contain this text");
  app.add_option("--threads", threads, "Threads of every contender")->check(CLI::Range(1, 1024));
  app.add_option("--rounds", options.rounds, "Rounds per workload")->check(CLI::Range(1, 1000));
  app.add_option("--slice", options.slice, "Seconds per contender and round")->check(CLI::Range(0.001, 10.0));
  app.add_flag("--alone", alone, "Without other libraries, whose threads wait by spinning");
  app.add_flag("--streams", streams, "Measure memory streams too");
  app.add_option("--json", json, "Also write everything to this file");
  CLI11_PARSE(app, argc, argv);

  const auto rivals = alone ? std::vector<bench::Contender>() : bench::find_rivals(threads);
  Context ctx = Context::parallel(threads);
  const bench::Limits limits = bench::measure_limits(threads, streams);
  std::fputs(bench::limits_text(limits).c_str(), stdout);
  std::vector<bench::Record> records;
  for (const auto& row : bench::all_cases()) {
    if (!op.empty() && row.op != op) continue;
    if (row.shape.find(shape) == std::string::npos) continue;
    std::fprintf(stderr, "%s %s\n", row.op.c_str(), row.shape.c_str());
    records.push_back(bench::measure(row, ctx, limits, rivals, options));
  }
  std::fputs(bench::table_text(records).c_str(), stdout);
  if (!json.empty()) {
    std::ofstream file(json);
    file << bench::json_text(limits, records);
    if (!file.flush()) {
      std::fprintf(stderr, "cannot write %s\n", json.c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
