// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/core/error.h"
#include "stepwell/io/json.h"

#include "bench/measure/report.h"
#include "bench/memory/memory_bench.h"
#include "cli/command.h"
#include "cli/table.h"

namespace stepwell::cli {

namespace {

// "0.998 ± 0.004", without the spread where it is 0.
std::string spread(const std::vector<double>& figures) {
  const auto [mean, deviation] = bench::mean_and_deviation(figures);
  if (std::isnan(mean)) return "–";
  char text[64];
  std::snprintf(text, sizeof text, deviation > 0 ? "%.3g ± %.2g" : "%.3g", mean, deviation);
  return text;
}

void print_table(const bench::MemoryTable& memory) {
  std::vector<std::string> titles = {memory.columns.front()};
  for (std::size_t i = 1; i < memory.columns.size(); ++i) titles.push_back(">" + memory.columns[i]);
  Table table(titles);
  for (const bench::MemoryRow& row : memory.rows) {
    std::vector<std::string> cells = {row.name};
    for (const std::vector<double>& figures : row.figures) cells.push_back(spread(figures));
    table.row(std::move(cells));
  }
  std::printf("%s\n", memory.title.c_str());
  table.print(stdout);
  std::printf("\n");
  std::fflush(stdout);
}

// All figures of all seeds.
Config table_config(std::string_view section, const bench::MemoryTable& memory) {
  Config::Array rows;
  for (const bench::MemoryRow& row : memory.rows) {
    Config::Object cells = {{memory.columns.front(), row.name}};
    for (std::size_t i = 0; i < row.figures.size(); ++i) {
      Config::Array figures;
      for (const double x : row.figures[i]) {
        if (std::isfinite(x)) figures.emplace_back(x);
        else figures.emplace_back();  // JSON has no NaN
      }
      cells.emplace_back(memory.columns[i + 1], std::move(figures));
    }
    rows.emplace_back(std::move(cells));
  }
  return Config::Object{{"section", std::string(section)}, {"title", memory.title}, {"rows", std::move(rows)}};
}

struct BenchCommand {
  std::string op;
  std::int64_t seeds = 0;  // not given
  int threads = 1;
  bool streams = false, memory = false, json = false;

  int run() const {
    if (memory && streams) fail(ErrorCode::Config, "bench", "--streams does not go with --memory");
    if (!memory && seeds != 0) fail(ErrorCode::Config, "bench", "--seeds goes with --memory");
    return memory ? run_memory() : run_ops();
  }

  int run_memory() const {
    Context ctx = Context::parallel(threads, Mode::Fast);
    const bench::MemoryBench setting{
        .ctx = ctx, .seeds = seeds == 0 ? 5 : seeds, .progress = [](const std::string& what) {
          std::fprintf(stderr, "%s\n", what.c_str());
        }};
    Config::Array tables;
    std::string known;
    for (const bench::MemorySection& section : bench::memory_sections()) {
      known += (known.empty() ? "" : ", ") + std::string(section.name);
      if (!op.empty() && op != section.name) continue;
      const bench::MemoryTable table = section.run(setting);
      if (!json) print_table(table);
      tables.push_back(table_config(section.name, table));
    }
    if (tables.empty()) fail(ErrorCode::Config, "bench", "no section \"" + op + "\"; there are " + known);
    if (json) std::printf("%s\n", io::to_json(Config(std::move(tables))).c_str());
    return kSuccess;
  }

  int run_ops() const {
    Context ctx = Context::parallel(threads);
    std::vector<bench::Case> cases;
    std::string known;
    for (bench::Case& row : bench::all_cases()) {
      if (known.find(row.op) == std::string::npos) known += (known.empty() ? "" : ", ") + row.op;
      if (op.empty() || row.op == op) cases.push_back(std::move(row));
    }
    if (cases.empty()) fail(ErrorCode::Config, "bench", "no op \"" + op + "\"; there are " + known);

    const bench::Limits limits = bench::measure_limits(ctx.threads(), streams);
    if (!json) std::fputs(bench::limits_text(limits).c_str(), stdout);
    std::vector<bench::Record> records;
    for (const bench::Case& row : cases) {
      std::fprintf(stderr, "%3zu/%zu  %s %s\n", records.size() + 1, cases.size(), row.op.c_str(), row.shape.c_str());
      records.push_back(bench::measure(row, ctx, limits, {}, {}));
    }
    std::fputs((json ? bench::json_text(limits, records) : bench::table_text(records)).c_str(), stdout);
    return kSuccess;
  }
};

}  // namespace

Action declare_bench(Options& options) {
  const auto command = std::make_shared<BenchCommand>();
  options.text("--op", command->op, "NAME", "only this op (with --memory: this section)");
  options.threads(command->threads);
  options.flag("--memory", command->memory, "memories trained by imitation and through time, side by side");
  options.integer("--seeds", command->seeds, 1, 1000, "with --memory: runs of each kind (default 5)");
  options.flag("--streams", command->streams, "measure memory streams too");
  options.json(command->json);
  return [command] { return command->run(); };
}

}  // namespace stepwell::cli
