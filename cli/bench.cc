// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "stepwell/core/error.h"

#include "bench/measure/report.h"
#include "cli/command.h"

namespace stepwell::cli {

namespace {

struct BenchCommand {
  std::string op;
  int threads = 1;
  bool streams = false, json = false;

  int run() const {
    Context ctx = Context::parallel(threads);
    std::vector<bench::Case> cases;
    std::string known;
    for (bench::Case& row : bench::all_cases()) {
      if (known.find(row.op) == std::string::npos) known += (known.empty() ? "" : ", ") + row.op;
      if (op.empty() || row.op == op) cases.push_back(std::move(row));
    }
    if (cases.empty()) fail(ErrorCode::Argument, "bench", "no op \"" + op + "\"; there are " + known);

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
  options.text("--op", command->op, "NAME", "only this op");
  options.threads(command->threads);
  options.flag("--streams", command->streams, "measure memory streams too");
  options.json(command->json);
  return [command] { return command->run(); };
}

}  // namespace stepwell::cli
