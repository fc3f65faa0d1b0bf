// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/core/config.h"
#include "stepwell/core/context.h"
#include "stepwell/io/file.h"
#include "stepwell/io/json.h"
#include "stepwell/models/model.h"
#include "stepwell/train/task.h"
#include "stepwell/train/text.h"
#include "stepwell/train/trainer.h"

#include "cli/command.h"
#include "cli/figures.h"
#include "cli/table.h"

namespace stepwell::cli {

namespace {

struct EvalArguments {
  std::string path;
  std::vector<std::string> texts;
  std::int64_t length = 0;
  int threads = 0;
  bool json = false;
};

// Bits per byte of each file and of all.
void evaluate_files(Context& ctx, const models::Model& model, const EvalArguments& a) {
  Table table({"file", ">bytes", ">bits per byte"});
  Config::Array files;
  double bits = 0;
  std::int64_t bytes = 0;
  auto row = [&](const std::string& name, std::int64_t size, double total) {
    const double per_byte = total / static_cast<double>(size);
    table.row({printable(name), with_commas(size), decimal(per_byte, 4)});
    files.emplace_back(Config::Object{{"file", name}, {"bytes", size}, {"bits_per_byte", per_byte}});
  };
  for (const std::string& path : train::list_files(a.texts)) {
    const io::MappedFile file = io::MappedFile::open(path);
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    const double total = train::document_bits(ctx, model, text);
    row(path, static_cast<std::int64_t>(text.size()), total);
    bits += total;
    bytes += static_cast<std::int64_t>(text.size());
  }
  row("all", bytes, bits);
  if (a.json) std::printf("%s\n", io::to_json(Config(std::move(files))).c_str());
  else table.print(stdout);
}

int eval_command(const EvalArguments& a) {
  Context ctx = Context::parallel(a.threads);
  const std::string folder = train::model_folder(a.path);
  const auto model = models::load_model(folder);
  model->prepare(ctx);
  if (!a.texts.empty()) {
    evaluate_files(ctx, *model, a);
    return kSuccess;
  }
  if (folder == a.path) {
    fail(ErrorCode::Config, "eval", a.path + " is a model without a recipe: name a run, or give --text");
  }
  train::Recipe recipe = train::load_recipe(a.path);
  if (a.length != 0 && recipe.task.empty()) fail(ErrorCode::Config, "eval", "--length is for runs on a task by name");
  if (a.length != 0) recipe.length = a.length;
  const auto task = train::make_task(recipe);
  if (a.length == 0) train::check_data(folder, *task);  // what is held out now may have been trained on
  print_figures(task->evaluate(ctx, *model, 0), a.json);
  return kSuccess;
}

}  // namespace

Action declare_eval(Options& options) {
  const auto a = std::make_shared<EvalArguments>();
  options.argument("run", a->path, true, "Run to measure on what it held out; with --text also a model folder");
  options.texts("--text", a->texts, true, "FILE", "Measure on these files and folders instead");
  options.integer("--length", a->length, 1, 1 << 24, "Tokens per sequence of a task by name (default: as trained)");
  options.threads(a->threads);
  options.json(a->json);
  return [a] { return eval_command(*a); };
}

}  // namespace stepwell::cli
