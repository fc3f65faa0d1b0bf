// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "stepwell/core/error.h"
#include "stepwell/io/file.h"

#include "cli/command.h"
#include "cli/report/pages.h"

namespace stepwell::cli {

namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
};

template <class Record>
std::vector<Record> read_all(const std::vector<std::string>& paths, Record (*read)(const std::string&)) {
  std::vector<Record> records;
  for (const std::string& path : paths) records.push_back(read(path));
  return records;
}

io::HtmlPage page_of(const std::vector<std::string>& paths) {
  if (paths.size() == 1 && io::file_exists(paths[0])) return bench_page(paths[0]);
  const auto distillations = std::ranges::count_if(paths, is_distillation);
  if (distillations == 0) {
    const std::vector<RunRecord> runs = read_all(paths, read_run);
    return runs.size() == 1 ? run_page(runs[0]) : comparison_page(runs);
  }
  if (distillations != std::ssize(paths)) {
    fail(ErrorCode::Config, "report", "runs of train and of distill, expected one kind: there is little to compare");
  }
  const std::vector<DistillRecord> runs = read_all(paths, read_distillation);
  return runs.size() == 1 ? distill_page(runs[0]) : distill_comparison_page(runs);
}

int report_command(const ReportArguments& a) {
  const io::HtmlPage page = page_of(a.runs);
  std::string out = a.out;
  const bool folder = a.runs.size() == 1 && !io::file_exists(a.runs[0]);
  if (out.empty()) out = folder ? io::join_path(a.runs[0], "report.html") : "report.html";
  io::write_file(out, page.html());
  std::printf("%s\n", out.c_str());
  return kSuccess;
}

}  // namespace

Action declare_report(Options& options) {
  const auto a = std::make_shared<ReportArguments>();
  options.arguments(
      "runs", a->runs,
      "Folders of runs: one gives a page about it, several a comparison; or what bench --memory --json printed");
  options.text("--out", a->out, "FILE", "The page to write (default: report.html in the run, or here for several)");
  return [a] { return report_command(*a); };
}

}  // namespace stepwell::cli
