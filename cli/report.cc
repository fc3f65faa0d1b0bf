// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "stepwell/io/file.h"

#include "cli/command.h"
#include "cli/report/pages.h"

namespace stepwell::cli {

namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
};

int report_command(const ReportArguments& a) {
  std::vector<RunRecord> runs;
  for (const std::string& path : a.runs) runs.push_back(read_run(path));
  const io::HtmlPage page = runs.size() == 1 ? run_page(runs[0]) : comparison_page(runs);
  std::string out = a.out;
  if (out.empty()) out = runs.size() == 1 ? io::join_path(a.runs[0], "report.html") : "report.html";
  io::write_file(out, page.html());
  std::printf("%s\n", out.c_str());
  return kSuccess;
}

}  // namespace

Action declare_report(Options& options) {
  const auto a = std::make_shared<ReportArguments>();
  options.arguments("runs", a->runs, "Folders of runs; one gives a page about it, several a comparison");
  options.text("--out", a->out, "FILE", "The page to write (default: report.html in the run, or here for several)");
  return [a] { return report_command(*a); };
}

}  // namespace stepwell::cli
