// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/distillation.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/memory/ridge.h"

#include "memory/evaluation.h"
#include "memory/examples.h"
#include "memory/imitation.h"
#include "memory/losses.h"
#include "memory/named_tensors.h"
#include "memory/rollout.h"

namespace stepwell::memory {

namespace {

std::unique_ptr<SetEncoderTeacher> make_teacher(const DistillRecipe& recipe, const train::SequenceTask& task,
                                                const MemoryUpdater& cell, const Rng& rng) {
  if (recipe.mode == DistillMode::Bptt) return nullptr;
  Config options = recipe.teacher;
  options.set("memory_width", cell.memory_width());
  SetEncoderConfig config = SetEncoderConfig::read(task.input_width(), recipe.horizon * task.output_width(), options);
  if (cell.type() == "gated" && config.bound != MemoryBound::Tanh) {
    fail(ErrorCode::Config, "recipe [teacher]",
         "bound is not tanh, but memories beyond 1 are out of a gated cell's reach: set bound = \"tanh\", or take "
         "another cell");
  }
  return std::make_unique<SetEncoderTeacher>(config, rng.stream("teacher"));
}

}  // namespace

struct Distillation::Impl {
  Context& ctx;
  DistillRecipe recipe;
  std::unique_ptr<train::SequenceTask> task;
  Rng rng;
  std::unique_ptr<MemoryUpdater> cell;
  std::unique_ptr<SetEncoderTeacher> teacher;
  LazyAdam teacher_adam, joint_adam;  // joint_adam: of teacher and cell, or of the cell in mode bptt
  std::unique_ptr<Imitation> imitation;
  Tensor first_readout;  // before the refit
  std::int64_t step = 0;
  bool finished = false;

  Impl(Context& context, const DistillRecipe& given, std::unique_ptr<train::SequenceTask> own_task,
       std::unique_ptr<MemoryUpdater> own_cell)
      : ctx(context),
        recipe(given),
        task(std::move(own_task)),
        rng(static_cast<std::uint64_t>(given.seed)),
        cell(own_cell ? std::move(own_cell)
                      : make_updater(given.cell, given.memory_width, task->input_width(), task->output_width(),
                                     given.cell_options, rng.stream("cell"))),
        teacher(make_teacher(given, *task, *cell, rng)) {
    if (teacher) {
      recipe.teacher = teacher->config().options();
      Config::Object kept;
      for (const auto& member : recipe.teacher.as_object("teacher")) {
        if (member.first != "memory_width") kept.push_back(member);
      }
      recipe.teacher = std::move(kept);
      imitation = std::make_unique<Imitation>(ctx, recipe, *task, *teacher, *cell);
    }
    recipe.task_options = task->config();
    recipe.cell_options = cell->config();
    finished = steps() == 0;
  }

  std::int64_t teacher_steps() const { return recipe.mode == DistillMode::Frozen ? recipe.teacher_steps : 0; }
  std::int64_t main_end() const { return teacher_steps() + recipe.steps; }
  std::int64_t steps() const { return main_end() + (imitation ? imitation->steps() : 0); }

  train::SequenceBatch sequences(std::int64_t count) const {
    return task->sample(recipe.seed, "train", step * recipe.batch, count, recipe.length);
  }
  Draw draw() const {
    const DrawOptions options{.window = teacher->config().window,
                              .context = cell->context(),
                              .event_share = recipe.event_share,
                              .horizon = recipe.horizon};
    return draw_transitions(sequences(recipe.batch), options, rng.stream("draws"), step * recipe.batch);
  }

  void teacher_step(DistillStep& out);
  void cloning_step(DistillStep& out);
  void joint_step(DistillStep& out);
  void bptt_step(DistillStep& out);
  void imitation_step(DistillStep& out);
  void take_decoder();
  void refit();
};

void Distillation::Impl::teacher_step(DistillStep& out) {
  const Draw d = draw();
  const Variable loss = answer_loss(ctx, teacher->predict(ctx, encode_after(ctx, *teacher, d)), d.answers);
  const train::AdamReport adam = teacher_adam.step(ctx, teacher->parameters(), loss, out.lr);
  out.phase = "teacher";
  out.loss = loss.value().at(0);
  out.gradient_norm = adam.gradient_norm;
  out.skipped = adam.skipped;
}

void Distillation::Impl::cloning_step(DistillStep& out) {
  const Draw d = draw();
  Transitions examples;
  {
    NoGrad no_grad;
    const MemoryPair pair = encode_pairs(ctx, *teacher, *cell, d);
    examples = {.memory = pair.before.value(),
                .tokens = d.tokens,
                .target = pair.after.value(),
                .next = d.answers.slice(1, 0, cell->output_width()).clone()};
  }
  const UpdateReport report = cell->train_step(ctx, examples, out.lr);
  out.phase = "cloning";
  out.loss = report.memory_loss + report.readout_loss;
  out.gradient_norm = report.gradient_norm;
  out.skipped = report.skipped;
  out.parts = {{"memory", report.memory_loss}, {"readout", report.readout_loss}};
}

void Distillation::Impl::joint_step(DistillStep& out) {
  const JointLoss loss = joint_loss(ctx, *teacher, *cell, draw(), recipe);
  std::vector<layers::Parameter*> all = teacher->parameters();
  for (layers::Parameter* p : cell->parameters()) all.push_back(p);
  const train::AdamReport adam = joint_adam.step(ctx, all, loss.total, out.lr);
  out.phase = "joint";
  out.loss = loss.total.value().at(0);
  out.gradient_norm = adam.gradient_norm;
  out.skipped = adam.skipped;
  out.parts = {{"dec", loss.decoding},
               {"dyn", loss.dynamics},
               {"dyn_over_variance", loss.dynamics / loss.variance},
               {"unif", loss.uniformity}};
}

void Distillation::Impl::bptt_step(DistillStep& out) {
  const Variable loss = unrolled_loss(ctx, *cell, sequences(recipe.batch));
  const train::AdamReport adam = joint_adam.step(ctx, cell->parameters(), loss, out.lr);
  out.phase = "bptt";
  out.loss = loss.value().at(0);
  out.gradient_norm = adam.gradient_norm;
  out.skipped = adam.skipped;
}

void Distillation::Impl::imitation_step(DistillStep& out) {
  UpdateReport report;
  const bool more = imitation->advance(step - main_end(), report);
  out.phase = "imitation";
  out.lr = imitation->rate(step - main_end());
  out.loss = report.memory_loss;
  out.gradient_norm = report.gradient_norm;
  out.skipped = report.skipped;
  out.parts = {{"memory", report.memory_loss}};
  if (!more) finished = true;
}

// The teacher's decoder reads the cell's memory, which imitates the teacher's.
void Distillation::Impl::take_decoder() {
  layers::NamedTensors parameters = cell->named_parameters();
  for (auto& [name, tensor] : parameters) {
    if (name == "w_read") {
      tensor = tensor_named("decoder", teacher->named_parameters()).slice(0, 0, cell->output_width());
    }
  }
  cell->set_named_parameters(parameters);
}

// Memories that the cell visits on its own, against the answers asked for next; from the token on that decides them.
void Distillation::Impl::refit() {
  const ImitationOptions& o = recipe.imitation;
  const train::SequenceBatch batch =
      task->sample(recipe.seed, "refit", 0, o.sequences, o.horizon > 0 ? o.horizon : recipe.length);
  const Tensor visited = free_rollout(ctx, *cell, batch.x), answers = next_answers(batch);
  const std::int64_t T = visited.size(1), n = cell->memory_width(), out = cell->output_width();
  std::vector<float> x, y;
  for (std::int64_t row = 0; row < visited.size(0) * T; ++row) {
    const float *memory = visited.data<float>() + row * n, *answer = answers.data<float>() + row * out;
    if (row % T < batch.event.data<std::int64_t>()[row / T] || std::isnan(answer[0])) continue;
    x.insert(x.end(), memory, memory + n);
    y.insert(y.end(), answer, answer + out);
  }
  const auto rows = static_cast<std::int64_t>(y.size()) / out;
  layers::NamedTensors parameters = cell->named_parameters();
  for (auto& [name, tensor] : parameters) {
    if (name != "w_read") continue;
    first_readout = tensor.clone();
    tensor = ridge_regression(Tensor::from<float>(x, {rows, n}), Tensor::from<float>(y, {rows, out}), o.ridge);
  }
  cell->set_named_parameters(parameters);
}

Distillation::Distillation(Context& ctx, const DistillRecipe& recipe)
    : Distillation(ctx, recipe, train::make_sequence_task(recipe.task, recipe.task_options)) {}
Distillation::Distillation(Context& ctx, const DistillRecipe& recipe, std::unique_ptr<train::SequenceTask> task,
                           std::unique_ptr<MemoryUpdater> cell)
    : impl_(std::make_unique<Impl>(ctx, recipe, std::move(task), std::move(cell))) {}
Distillation::~Distillation() = default;

const DistillRecipe& Distillation::recipe() const { return impl_->recipe; }
const train::SequenceTask& Distillation::task() const { return *impl_->task; }
const MemoryUpdater& Distillation::cell() const { return *impl_->cell; }
const SetEncoderTeacher* Distillation::teacher() const { return impl_->teacher.get(); }
std::int64_t Distillation::steps() const { return impl_->steps(); }
std::int64_t Distillation::step() const { return impl_->step; }
bool Distillation::done() const { return impl_->finished; }

const std::vector<RoundReport>& Distillation::rounds() const {
  static const std::vector<RoundReport> kNone;
  return impl_->imitation ? impl_->imitation->rounds() : kNone;
}

DistillStep Distillation::advance() {
  Impl& run = *impl_;
  STEPWELL_CHECK(!run.finished, "Distillation", "no step is left, expected a call only while not done()");
  DistillStep out;
  out.lr = run.recipe.schedule.at(run.step < run.teacher_steps() ? 0 : run.step - run.teacher_steps());
  if (run.step < run.teacher_steps()) {
    run.teacher_step(out);
  } else if (run.step < run.main_end()) {
    switch (run.recipe.mode) {
      case DistillMode::Frozen: run.cloning_step(out); break;
      case DistillMode::Joint: run.joint_step(out); break;
      case DistillMode::Bptt: run.bptt_step(out); break;
    }
  } else {
    run.imitation_step(out);
  }
  out.step = ++run.step;
  if (run.step == run.main_end() && run.recipe.mode == DistillMode::Joint) run.take_decoder();
  run.finished = run.finished || run.step == run.steps();
  if (run.finished && run.teacher && run.recipe.imitation.refit) run.refit();
  return out;
}

layers::NamedTensors Distillation::state() const {
  const Impl& run = *impl_;
  layers::NamedTensors state;
  add_under("cell.", run.cell->named_parameters(), state);
  add_under("cell_optimizer.", run.cell->optimizer_state(), state);
  add_under("joint_optimizer.", run.joint_adam.state(), state);
  if (run.teacher) {
    add_under("teacher.", run.teacher->named_parameters(), state);
    add_under("teacher_optimizer.", run.teacher_adam.state(), state);
    add_under("imitation.", run.imitation->state(), state);
  }
  if (run.first_readout.defined()) state.emplace_back("first_readout", run.first_readout);
  const std::int64_t progress[] = {run.step, run.finished};
  state.emplace_back("progress", Tensor::from<std::int64_t>(progress, {2}));
  return state;
}

void Distillation::set_state(const layers::NamedTensors& state) {
  Impl& run = *impl_;
  run.cell->set_named_parameters(those_under("cell.", state));
  run.cell->set_optimizer_state(those_under("cell_optimizer.", state));
  std::vector<layers::Parameter*> all;
  if (run.teacher) {
    run.teacher->set_named_parameters(those_under("teacher.", state));
    run.teacher_adam.set_state(run.teacher->parameters(), those_under("teacher_optimizer.", state));
    run.imitation->set_state(those_under("imitation.", state));
    all = run.teacher->parameters();
  }
  for (layers::Parameter* p : run.cell->parameters()) all.push_back(p);
  run.joint_adam.set_state(all, those_under("joint_optimizer.", state));
  run.first_readout = {};
  for (const auto& [name, tensor] : state) {
    if (name == "first_readout") run.first_readout = tensor.clone();
  }
  const Tensor& progress = tensor_named("progress", state);
  run.step = progress.data<std::int64_t>()[0];
  run.finished = progress.data<std::int64_t>()[1] != 0;
}

Config Distillation::report() const {
  const Impl& run = *impl_;
  Config::Object report = {
      {"format", kReportFormat},
      {"recipe", run.recipe.to_config()},
      {"task", Config::Object{{"name", run.recipe.task},
                              {"answer", run.task->answer() == train::Answer::Sign ? "sign" : "value"},
                              {"length", run.recipe.length}}},
      {"cell", Config::Object{{"type", std::string(run.cell->type())},
                              {"memory_width", run.cell->memory_width()},
                              {"parameters", run.cell->parameter_count()},
                              {"context", run.cell->context()}}},
      {"steps", run.step}};
  Config::Object measured = evaluate(run.ctx, run.recipe, *run.task, *run.cell, run.teacher.get(), run.first_readout);
  const Config* variance = measured.front().second.find("variance");
  report.emplace_back("rounds", rounds_report(rounds(), variance->is_null() ? 0 : variance->as_double("variance")));
  for (auto& member : measured) report.push_back(std::move(member));
  return report;
}

}  // namespace stepwell::memory
