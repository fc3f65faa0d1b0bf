// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/core/config.h"
#include "stepwell/core/context.h"
#include "stepwell/io/file.h"
#include "stepwell/io/json.h"
#include "stepwell/io/toml.h"
#include "stepwell/memory/distiller.h"

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/report/pages.h"
#include "cli/settings.h"
#include "cli/table.h"

namespace stepwell::cli {

namespace {

struct DistillArguments {
  std::string recipe, out, resume;
  std::vector<std::string> settings;
  int threads = 0;
  bool json = false;
};

[[noreturn]] void usage(const std::string& message) { fail(ErrorCode::Config, "distill", message); }

std::string figure(const Config* value) {
  return value && value->is_number() ? decimal(value->as_double("report"), 4) : "–";
}

// Names that any of the rows have, in order of their first appearance, but for these.
std::vector<std::string> columns_of(const Config::Array& rows, const std::vector<std::string>& left_out) {
  std::vector<std::string> names;
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const Config& row : rows) {
    for (const auto& [name, value] : row.as_object("report")) {
      if (!has(left_out, name) && !has(names, name)) names.push_back(name);
    }
  }
  return names;
}

void print_drift(const Config& report) {
  const auto& rows = report.find("drift")->as_array("report");
  if (rows.empty()) return;
  Table table({">steps", ">drift", ">of variance", ">student", ">teacher"});
  for (const Config& row : rows) {
    const auto step = [&row](const char* name) { return std::to_string(row.find(name)->as_integer("report")); };
    const Config *drift = row.find("drift"), *part = row.find("over_variance");
    table.row({step("first") + "–" + step("last"), drift->is_null() ? "–" : significant(drift->as_double("report")),
               figure(part), figure(row.find("student")), figure(row.find("teacher"))});
  }
  std::printf("drift of the cell's memory from the teacher's, and mean square errors, on held-out sequences\n");
  table.print(stdout);
  std::printf("\n");
}

void print_errors(const Config& report) {
  const auto& rows = report.find("errors")->as_array("report");
  if (rows.empty()) return;
  const std::vector<std::string> columns = columns_of(rows, {"times", "length", "sequences", "measure"});
  std::vector<std::string> titles = {">length"};
  for (const std::string& name : columns) titles.push_back(">" + spaced(name));
  Table table(titles);
  for (const Config& row : rows) {
    std::vector<std::string> cells = {std::to_string(row.find("length")->as_integer("report"))};
    for (const std::string& name : columns) cells.push_back(figure(row.find(name)));
    table.row(std::move(cells));
  }
  std::printf("%s on %lld held-out sequences\n", rows[0].find("measure")->as_string("report").c_str(),
              static_cast<long long>(rows[0].find("sequences")->as_integer("report")));
  table.print(stdout);
}

int distill_command(const DistillArguments& a) {
  const bool resume = !a.resume.empty();
  if (resume && (!a.recipe.empty() || !a.settings.empty() || !a.out.empty())) {
    usage("--resume goes on with a run as it was started: it takes no recipe, --set or --out");
  }
  if (!resume && a.recipe.empty()) usage("nothing to learn: give a recipe or --resume");

  Context ctx = Context::parallel(a.threads);
  std::string folder = resume ? a.resume : a.out.empty() ? default_run_folder(a.recipe) : a.out;
  const auto begin = [&] {
    if (resume) return memory::Distiller::resume(ctx, folder);
    Config recipe = io::read_toml(a.recipe);
    apply_settings(recipe, a.settings, memory::DistillRecipe().to_config());
    return memory::Distiller::start(ctx, memory::DistillRecipe::read(recipe), folder);
  };
  memory::Distiller distiller = begin();
  const memory::Distillation& d = distiller.distillation();
  std::fprintf(
      stderr, "%s, sequences of %lld tokens; %s cell with %lld numbers of memory, %s parameters; run folder %s\n",
      d.recipe().task.c_str(), static_cast<long long>(d.recipe().length), std::string(d.cell().type()).c_str(),
      static_cast<long long>(d.cell().memory_width()), with_commas(d.cell().parameter_count()).c_str(), folder.c_str());

  const std::atomic<bool>& stop = interrupt_flag();
  train::Outcome outcome;
  {
    DistillProgress progress(d.step(), d.steps());
    outcome = distiller.run(progress, stop);
  }
  if (outcome == train::Outcome::Interrupted) {
    std::fprintf(stderr, "interrupted after step %lld, which is saved; go on with: stepwell distill --resume %s\n",
                 static_cast<long long>(d.step()), folder.c_str());
    return kInterrupted;
  }
  const std::string page = io::join_path(folder, "report.html");
  io::write_file(page, distill_page(read_distillation(folder)).html());
  if (a.json) {
    std::printf("%s\n", io::to_json(distiller.report()).c_str());
    return kSuccess;
  }
  print_drift(distiller.report());
  print_errors(distiller.report());
  std::printf("\n%s\n%s\n", io::join_path(folder, memory::kReportFile).c_str(), page.c_str());
  return kSuccess;
}

}  // namespace

Action declare_distill(Options& options) {
  const auto a = std::make_shared<DistillArguments>();
  options.argument("recipe", a->recipe, false, "Recipe (TOML) with sections task, teacher, cell, train and imitation");
  options.texts("--set", a->settings, false, "KEY=VALUE", "Set a value of the recipe, such as train.steps=500");
  options.text("--out", a->out, "RUN", "Folder of the run (default: runs/NAME)");
  options.text("--resume", a->resume, "RUN", "Go on with a run that was stopped");
  options.threads(a->threads);
  options.json(a->json);
  return [a] { return distill_command(*a); };
}

}  // namespace stepwell::cli
