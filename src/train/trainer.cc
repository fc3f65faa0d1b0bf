// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/trainer.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "stepwell/autograd/functions.h"
#include "stepwell/io/file.h"
#include "stepwell/io/safetensors.h"
#include "stepwell/io/seal.h"
#include "stepwell/ops/elementwise.h"

#include "train/run_folder.h"

namespace stepwell::train {

namespace {

constexpr const char* kTrainingFormat = "stepwell-training-1";
constexpr const char* kTrainingFile = "training.safetensors";

// Training computes in Mode::Fast, evaluation in Mode::Exact; the caller's mode comes back afterwards.
class ModeScope {
 public:
  ModeScope(Context& ctx, Mode mode) : ctx_(ctx), outer_(ctx.mode()) { ctx.set_mode(mode); }
  ~ModeScope() { ctx_.set_mode(outer_); }
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  Context& ctx_;
  Mode outer_;
};

Config finite(double x) { return std::isfinite(x) ? Config(x) : Config(); }  // JSON has no NaN

std::unique_ptr<models::Model> new_model(const Recipe& recipe, const Task& task) {
  Config config = recipe.model;
  if (const Config* type = config.find("type")) {
    const std::string given = type->as_string("recipe [model] type");
    std::string known;
    bool fits = false;
    for (const std::string_view name : task.model_types()) {
      fits = fits || name == given;
      known += (known.empty() ? "" : " or ") + std::string(name);
    }
    if (!fits)
      fail(ErrorCode::Config, "recipe [model]", "type is " + given + ", expected " + known + " for these data");
  }
  task.complete(config);
  return models::make_model(config, Rng(static_cast<std::uint64_t>(recipe.seed)).stream("model"));
}

std::string field(const io::SafetensorsFile& file, const char* name) {
  const io::Metadata metadata = file.metadata();
  const auto found = metadata.find(name);
  if (found == metadata.end()) fail(ErrorCode::File, "checkpoint", file.path() + " has no metadata " + name);
  return found->second;
}

void check_data_of(const io::SafetensorsFile& file, const std::string& data) {
  const std::string trained = field(file, "data");
  if (trained == data) return;
  fail(ErrorCode::File, "checkpoint",
       file.path() + " was trained on data with BLAKE3 " + trained + ", the recipe's data now have " + data);
}

// A run among its own texts would read its files as text the next time.
void check_outside(const std::vector<std::string>& texts, const std::string& folder) {
  namespace fs = std::filesystem;
  const auto hidden = [](const fs::path& part) { return part != "." && part.native().starts_with('.'); };
  std::error_code error;
  for (const std::string& text : texts) {
    const fs::path below = fs::weakly_canonical(folder, error).lexically_relative(fs::weakly_canonical(text, error));
    if (below.empty() || *below.begin() == ".." || std::any_of(below.begin(), below.end(), hidden)) continue;
    fail(ErrorCode::File, "run", folder + ": lies in " + text + ", which is read as text; name a folder outside it");
  }
}

}  // namespace

struct Trainer::Impl {
  Context& ctx;
  Recipe recipe;
  std::unique_ptr<Task> task;
  std::string data;  // the task's fingerprint
  std::unique_ptr<models::Model> model;
  Adam adam;
  Rng dropout;
  std::optional<RunFolder> folder;
  std::int64_t step = 0;    // done
  std::int64_t saved = -1;  // the step of the newest checkpoint

  Impl(Context& context, Recipe given)
      : ctx(context),
        recipe(std::move(given)),
        task(make_task(recipe)),
        data(task->fingerprint()),
        model(new_model(recipe, *task)),
        adam(model->parameters(), recipe.adam),
        dropout(Rng(static_cast<std::uint64_t>(recipe.seed)).stream("dropout")) {}

  std::int64_t windows_per_step() const { return recipe.batch * recipe.accumulate; }

  double forward_backward(std::vector<Tensor>& gradients);
  StepMetrics train_step();
  void evaluate(Observer& observer);
  void save(Observer& observer);
  void load(const std::string& checkpoint);
};

// Mean loss of the step's windows; adds its gradient up in `gradients`, one for each parameter.
double Trainer::Impl::forward_backward(std::vector<Tensor>& gradients) {
  const auto parameters = model->parameters();
  double total = 0;
  for (std::int64_t pass = 0; pass < recipe.accumulate; ++pass) {
    const std::int64_t first = step * windows_per_step() + pass * recipe.batch;
    const Rng rng = dropout.stream(static_cast<std::uint64_t>(first));
    const Variable loss =
        scale(ctx, task->loss(ctx, *model, first, recipe.batch, &rng), 1.0 / static_cast<double>(recipe.accumulate));
    total += loss.value().at(0);
    if (!std::isfinite(total)) return total;
    const Gradients fresh = backward(ctx, loss);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Tensor g = fresh.of(parameters[i]->value);
      if (!g.defined()) continue;
      if (gradients[i].defined()) {
        const Tensor sum = Tensor::empty(g.shape(), g.dtype());
        ops::add(ctx, gradients[i], g, sum);
        gradients[i] = sum;
      } else {
        gradients[i] = g;
      }
    }
  }
  return total;
}

StepMetrics Trainer::Impl::train_step() {
  const ModeScope mode(ctx, Mode::Fast);
  const auto start = std::chrono::steady_clock::now();
  StepMetrics metrics;
  metrics.lr = recipe.schedule.at(step);
  std::vector<Tensor> gradients(model->parameters().size());
  metrics.loss = forward_backward(gradients);
  if (std::isfinite(metrics.loss)) {
    metrics.gradient_norm = adam.step(ctx, gradients, metrics.lr).gradient_norm;
  } else {
    adam.skip();
    metrics.gradient_norm = metrics.loss;
  }
  metrics.step = ++step;
  metrics.skipped = adam.skipped();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  metrics.tokens_per_second = static_cast<double>(windows_per_step() * recipe.length) / elapsed.count();
  folder->append_metrics(Config::Object{{"step", metrics.step},
                                        {"loss", finite(metrics.loss)},
                                        {"lr", metrics.lr},
                                        {"gradient_norm", finite(metrics.gradient_norm)},
                                        {"skipped", metrics.skipped},
                                        {"tokens_per_second", metrics.tokens_per_second}});
  return metrics;
}

void Trainer::Impl::evaluate(Observer& observer) {
  const bool last = step == recipe.steps;
  if (!last && (recipe.evaluate_every == 0 || step % recipe.evaluate_every != 0)) return;
  const ModeScope mode(ctx, Mode::Exact);
  const Figures figures = task->evaluate(ctx, *model, last ? 0 : recipe.evaluate_most);
  if (figures.empty()) return;
  Config::Object values;
  for (const auto& [name, value] : figures) values.emplace_back(name, finite(value));
  folder->append_metrics(Config::Object{{"step", step}, {"held_out", std::move(values)}});
  observer.on_evaluation(step, figures);
}

void Trainer::Impl::save(Observer& observer) {
  const std::string path = folder->save_checkpoint(step, [this](const std::string& unfinished) {
    models::save_model(*model, unfinished);
    const std::string file = io::join_path(unfinished, kTrainingFile);
    io::write_sealed(file, [&] {
      io::write_safetensors(file, adam.state(),
                            {{"format", kTrainingFormat},
                             {"step", std::to_string(step)},
                             {"next_window", std::to_string(step * windows_per_step())},
                             {"seed", std::to_string(recipe.seed)},
                             {"data", data}});
    });
  });
  saved = step;
  observer.on_checkpoint(step, path);
}

void Trainer::Impl::load(const std::string& checkpoint) {
  const std::string path = io::join_path(checkpoint, kTrainingFile);
  const auto file = io::SafetensorsFile::open(io::open_sealed(path), path);
  io::check_format(file.metadata(), kTrainingFormat, file.path());
  check_data_of(file, data);
  if (const std::string seed = field(file, "seed"); seed != std::to_string(recipe.seed)) {
    fail(ErrorCode::File, "checkpoint", file.path() + " has another seed than the recipe, " + seed);
  }
  const std::string digits = field(file, "step");
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || stop != digits.data() + digits.size() || step < 0) {
    fail(ErrorCode::File, "checkpoint", file.path() + " has step \"" + digits + "\", expected a number");
  }
  adam.set_state(file.tensors());
  model->set_named_parameters(models::load_model(checkpoint)->named_parameters());
  saved = step;
}

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

const Recipe& Trainer::recipe() const { return impl_->recipe; }
const models::Model& Trainer::model() const { return *impl_->model; }
const Task& Trainer::task() const { return *impl_->task; }
std::int64_t Trainer::step() const { return impl_->step; }

Trainer Trainer::start(Context& ctx, Recipe recipe, const std::string& folder) {
  auto impl = std::make_unique<Impl>(ctx, std::move(recipe));
  impl->recipe.model = impl->model->config();
  check_outside(impl->recipe.text, folder);
  impl->folder.emplace(RunFolder::create(folder, impl->recipe.to_config()));
  return Trainer(std::move(impl));
}

Trainer Trainer::resume(Context& ctx, const std::string& folder) {
  RunFolder run = RunFolder::open(folder);
  auto impl = std::make_unique<Impl>(ctx, load_recipe(folder));
  const std::vector<std::int64_t> checkpoints = RunFolder::checkpoints(folder);
  if (!checkpoints.empty()) impl->load(RunFolder::checkpoint_folder(folder, checkpoints.back()));
  run.continue_metrics(impl->step);
  impl->folder.emplace(std::move(run));
  return Trainer(std::move(impl));
}

Outcome Trainer::run(Observer& observer, const std::atomic<bool>& stop) {
  Impl& run = *impl_;
  if (run.recipe.steps == 0 && run.saved < 0) run.evaluate(observer);
  while (run.step < run.recipe.steps && !stop) {
    observer.on_step(run.train_step());
    run.evaluate(observer);
    if (run.step % run.recipe.save_every == 0) run.save(observer);
  }
  if (run.saved != run.step) run.save(observer);
  return run.step < run.recipe.steps ? Outcome::Interrupted : Outcome::Finished;
}

std::string newest_checkpoint(const std::string& path) {
  if (io::file_exists(io::join_path(path, "config.json"))) return path;
  const std::vector<std::int64_t> checkpoints = RunFolder::checkpoints(path);
  if (checkpoints.empty()) {
    fail(ErrorCode::File, "model",
         path + " holds neither a model (config.json) nor a run with a checkpoint (checkpoints/)");
  }
  return RunFolder::checkpoint_folder(path, checkpoints.back());
}

std::string model_folder(const std::string& path) {
  const std::string folder = newest_checkpoint(path);
  if (!io::file_exists(io::join_path(folder, "config.json"))) {
    fail(ErrorCode::File, "model",
         path + " holds no model: there is no config.json in " + folder +
             "; of a distillation, figures are in report.html and tensors are shown by inspect");
  }
  return folder;
}

void check_data(const std::string& checkpoint, const Task& task) {
  const std::string path = io::join_path(checkpoint, kTrainingFile);
  if (io::file_exists(path)) check_data_of(io::SafetensorsFile::open(path), task.fingerprint());
}

Recipe load_recipe(const std::string& folder) { return Recipe::read(RunFolder::read_recipe(folder)); }

}  // namespace stepwell::train
