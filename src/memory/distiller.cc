// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/distiller.h"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "stepwell/io/file.h"
#include "stepwell/io/json.h"
#include "stepwell/io/safetensors.h"
#include "stepwell/io/seal.h"

#include "memory/evaluation.h"
#include "train/run_folder.h"

namespace stepwell::memory {

namespace {

constexpr const char* kFormat = "stepwell-distillation-state-1";
constexpr const char* kStateFile = "distillation.safetensors";
constexpr const char* kKind = "distill";
constexpr std::size_t kLossRows = 400;  // in the report

Config step_line(const DistillStep& step) {
  Config::Object line = {{"step", step.step},
                         {"phase", std::string(step.phase)},
                         {"loss", finite_or_null(step.loss)},
                         {"lr", step.lr},
                         {"gradient_norm", finite_or_null(step.gradient_norm)}};
  if (step.skipped) line.emplace_back("skipped", true);
  for (const auto& [name, value] : step.parts) line.emplace_back(name, finite_or_null(value));
  return line;
}

// The report's "losses": lines of metrics.jsonl, evenly spread, the last one among them.
Config losses_of(const std::string& path) {
  const std::string text = io::read_file(path, std::numeric_limits<std::int64_t>::max());
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  Config::Array rows;
  const std::size_t every = (lines.size() + kLossRows - 1) / kLossRows;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if ((lines.size() - 1 - i) % every != 0) continue;
    Config::Object row;
    const Config line = io::parse_json(lines[i], path);
    for (const auto& [name, value] : line.as_object(path)) {
      if (name != "lr" && name != "gradient_norm" && name != "skipped") row.emplace_back(name, value);
    }
    rows.emplace_back(std::move(row));
  }
  return rows;
}

DistillRecipe recipe_of(const std::string& folder) {
  Config config = train::RunFolder::read_recipe(folder);
  const Config* kind = config.find("kind");
  if (!kind || !kind->is_string() || kind->as_string("kind") != kKind) {
    fail(ErrorCode::File, "run", folder + " holds a run of another command, expected one of stepwell distill");
  }
  Config::Object sections;
  for (const auto& [key, value] : config.as_object("recipe")) {
    if (key != "kind") sections.emplace_back(key, value);
  }
  return DistillRecipe::read(Config(std::move(sections)));
}

}  // namespace

struct Distiller::Impl {
  Distillation distillation;
  std::optional<train::RunFolder> folder;
  std::int64_t saved = -1;  // the step of the newest checkpoint
  std::size_t told = 0;     // rounds
  Config report;

  Impl(Context& ctx, const DistillRecipe& recipe) : distillation(ctx, recipe) {}

  void save() {
    folder->save_checkpoint(distillation.step(), [this](const std::string& unfinished) {
      const std::string file = io::join_path(unfinished, kStateFile);
      io::write_sealed(file, [&] { io::write_safetensors(file, distillation.state(), {{"format", kFormat}}); });
    });
    saved = distillation.step();
  }

  void load(const std::string& checkpoint) {
    const std::string path = io::join_path(checkpoint, kStateFile);
    const auto file = io::SafetensorsFile::open(io::open_sealed(path), path);
    io::check_format(file.metadata(), kFormat, path);
    distillation.set_state(file.tensors());
    saved = distillation.step();
    told = distillation.rounds().size();
  }

  void write_report() {
    Config::Object all;
    const Config measured = distillation.report();
    for (const auto& member : measured.as_object("report")) {
      all.push_back(member);
      if (member.first == "steps") {
        all.emplace_back("losses", losses_of(io::join_path(folder->path(), "metrics.jsonl")));
      }
    }
    report = std::move(all);
    io::write_file(io::join_path(folder->path(), kReportFile), io::to_json(report) + "\n");
  }
};

Distiller::Distiller(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Distiller::Distiller(Distiller&&) noexcept = default;
Distiller::~Distiller() = default;

const Distillation& Distiller::distillation() const { return impl_->distillation; }
const Config& Distiller::report() const { return impl_->report; }

Distiller Distiller::start(Context& ctx, const DistillRecipe& recipe, const std::string& folder) {
  auto impl = std::make_unique<Impl>(ctx, recipe);
  Config::Object whole = {{"kind", kKind}};
  const Config sections = impl->distillation.recipe().to_config();
  for (const auto& section : sections.as_object("recipe")) whole.push_back(section);
  impl->folder.emplace(train::RunFolder::create(folder, Config(std::move(whole))));
  return Distiller(std::move(impl));
}

Distiller Distiller::resume(Context& ctx, const std::string& folder) {
  train::RunFolder run = train::RunFolder::open(folder);
  auto impl = std::make_unique<Impl>(ctx, recipe_of(folder));
  const std::vector<std::int64_t> checkpoints = train::RunFolder::checkpoints(folder);
  if (!checkpoints.empty()) impl->load(train::RunFolder::checkpoint_folder(folder, checkpoints.back()));
  run.continue_metrics(impl->distillation.step());
  impl->folder.emplace(std::move(run));
  return Distiller(std::move(impl));
}

train::Outcome Distiller::run(DistillObserver& observer, const std::atomic<bool>& stop) {
  Impl& impl = *impl_;
  Distillation& d = impl.distillation;
  while (!d.done() && !stop) {
    const DistillStep step = d.advance();
    impl.folder->append_metrics(step_line(step));
    observer.on_step(step, d.steps());
    for (; impl.told < d.rounds().size(); ++impl.told) {
      observer.on_round(static_cast<std::int64_t>(impl.told), d.rounds()[impl.told]);
    }
    if (step.step % d.recipe().save_every == 0) impl.save();
  }
  if (impl.saved != d.step()) impl.save();
  if (!d.done()) return train::Outcome::Interrupted;
  impl.write_report();
  return train::Outcome::Finished;
}

}  // namespace stepwell::memory
