// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/core/config.h"
#include "stepwell/core/context.h"
#include "stepwell/io/toml.h"
#include "stepwell/train/sequence_task.h"
#include "stepwell/train/trainer.h"

#include "cli/command.h"
#include "cli/figures.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/settings.h"
#include "cli/table.h"

namespace stepwell::cli {

namespace {

struct TrainArguments {
  std::string recipe, hold_out, csv, column, task, out, resume;
  std::vector<std::string> texts, settings;
  int threads = 0;
  bool json = false;
};

[[noreturn]] void usage(const std::string& message) { fail(ErrorCode::Config, "train", message); }

std::string task_names() {
  std::string names;
  for (const train::SequenceTaskRow& row : train::sequence_tasks()) {
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return names;
}

train::Recipe read_recipe(const TrainArguments& a) {
  Config recipe;
  if (!a.recipe.empty()) recipe = io::read_toml(a.recipe);
  if (!a.texts.empty()) {
    Config::Array paths;
    for (const std::string& path : a.texts) paths.emplace_back(path);
    recipe.set_path("data.text", std::move(paths));
  }
  if (!a.hold_out.empty()) recipe.set_path("data.hold_out", a.hold_out);
  if (!a.csv.empty()) recipe.set_path("data.csv", a.csv);
  if (!a.column.empty()) recipe.set_path("data.column", a.column);
  if (!a.task.empty()) recipe.set_path("data.task", a.task);
  apply_settings(recipe, a.settings, train::Recipe().to_config());
  return train::Recipe::read(recipe);
}

// runs/NAME, after the recipe or the data.
std::string default_folder(const TrainArguments& a, const train::Recipe& recipe) {
  if (a.recipe.empty() && !recipe.task.empty()) return "runs/" + recipe.task;
  return default_run_folder(!a.recipe.empty() ? a.recipe : !recipe.csv.empty() ? recipe.csv : recipe.text.front());
}

int train_command(const TrainArguments& a) {
  const bool resume = !a.resume.empty();
  const bool anything = !a.recipe.empty() || !a.texts.empty() || !a.csv.empty() || !a.task.empty();
  if (resume && (anything || !a.settings.empty() || !a.out.empty() || !a.hold_out.empty())) {
    usage("--resume goes on with a run as it was started: it takes no recipe, data, --set or --out");
  }
  if (!resume && !anything) usage("nothing to train on: give a recipe, --text, --csv, --task or --resume");

  Context ctx = Context::parallel(a.threads);
  std::string folder = resume ? a.resume : a.out;
  auto begin = [&] {
    if (resume) return train::Trainer::resume(ctx, folder);
    const train::Recipe recipe = read_recipe(a);
    if (folder.empty()) folder = default_folder(a, recipe);
    return train::Trainer::start(ctx, recipe, folder);
  };
  train::Trainer trainer = begin();
  std::fprintf(stderr, "%s\n%s parameters; %d %s; run folder %s\n", trainer.task().describe().c_str(),
               with_commas(trainer.model().parameter_count()).c_str(), ctx.threads(),
               ctx.threads() == 1 ? "thread" : "threads", folder.c_str());

  const std::atomic<bool>& stop = interrupt_flag();
  train::Figures figures;
  train::Outcome outcome;
  std::int64_t skipped = 0;
  {
    TrainProgress progress(trainer.step(), trainer.recipe().steps);
    outcome = trainer.run(progress, stop);
    figures = progress.last_figures();
    skipped = progress.skipped();
  }
  if (skipped > 0) {
    std::fprintf(stderr, "%lld steps were skipped, since their loss or gradient was not finite\n",
                 static_cast<long long>(skipped));
  }
  if (outcome == train::Outcome::Interrupted) {
    std::fprintf(stderr, "interrupted after step %lld, which is saved; go on with: stepwell train --resume %s\n",
                 static_cast<long long>(trainer.step()), folder.c_str());
    return kInterrupted;
  }
  if (!figures.empty() || a.json) print_figures(figures, a.json);
  return kSuccess;
}

}  // namespace

Action declare_train(Options& options) {
  const auto a = std::make_shared<TrainArguments>();
  options.argument("recipe", a->recipe, false, "Recipe (TOML) with sections data, model and train");
  options.texts("--text", a->texts, true, "FILE", "Train a byte-level language model on these files and folders");
  options.text("--hold-out", a->hold_out, "PATTERN", "Hold out files whose name matches, such as 'MPL*'");
  options.text("--csv", a->csv, "FILE", "Train a forecaster on a column of this CSV file");
  options.text("--column", a->column, "NAME", "Name of the column, or its number from 1 on");
  options.text("--task", a->task, "NAME", "Train a forecaster on a task by name: " + task_names());
  options.texts("--set", a->settings, false, "KEY=VALUE", "Set a value of the recipe, such as train.steps=500");
  options.text("--out", a->out, "RUN", "Folder of the run (default: runs/NAME)");
  options.text("--resume", a->resume, "RUN", "Go on with a run that was stopped");
  options.threads(a->threads);
  options.json(a->json);
  return [a] { return train_command(*a); };
}

}  // namespace stepwell::cli
