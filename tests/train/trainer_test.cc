// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/trainer.h"

#include <cmath>
#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"
#include "stepwell/io/safetensors.h"

#include "tests/train/killed_child.h"
#include "tests/train/scratch_folder.h"
#include "tests/train/small_run.h"

namespace stepwell::train {
namespace {

constexpr std::int64_t kSteps = 60;

// The folder of a test's runs and their text.
class Runs {
 public:
  Runs() { scratch_.write("text", small_text()); }

  std::string path(const std::string& name) const { return scratch_.path(name); }
  Recipe recipe(std::int64_t steps = kSteps) const { return small_recipe(path("text"), steps); }
  std::string last_checkpoint(const std::string& run) const { return model_folder(path(run)); }
  void change_text() const { scratch_.write("text", small_text() + "!"); }

  // Trains in one go.
  void straight(const std::string& run, int threads = 1) const {
    Context ctx = Context::parallel(threads);
    Trainer trainer = Trainer::start(ctx, recipe(), path(run));
    EXPECT_EQ(run_until(trainer, -1), Outcome::Finished);
  }
  void expect_same_end(const std::string& a, const std::string& b) const {
    EXPECT_TRUE(last_checkpoint(a).ends_with("step-00000060")) << last_checkpoint(a);
    EXPECT_EQ(files_of(last_checkpoint(a)), files_of(last_checkpoint(b)));
    EXPECT_EQ(metrics_of(path(a)), metrics_of(path(b)));
  }

 private:
  ScratchFolder scratch_;
};

// Trains `run` in a child process that is killed after step `last`.
void start_and_kill(const Runs& runs, const std::string& run, std::int64_t last) {
  EXPECT_TRUE(is_killed_in([&] {
    Context ctx = Context::serial();
    Trainer trainer = Trainer::start(ctx, runs.recipe(), runs.path(run));
    AfterStep observer([last](const StepMetrics& metrics) {
      if (metrics.step == last) std::raise(SIGKILL);
    });
    trainer.run(observer, std::atomic<bool>(false));
  }));
}

TEST(Trainer, LearnsAndLeavesACompleteRunFolder) {
  const Runs runs;
  runs.straight("run");
  const auto metrics = metrics_of(runs.path("run"));
  double first = 0, last = 0;
  std::int64_t steps = 0, evaluations = 0;
  for (const Config& line : metrics) {
    if (line.find("held_out")) {
      ++evaluations;
      continue;
    }
    EXPECT_EQ(line.find("step")->as_integer("step"), ++steps);
    last = line.find("loss")->as_double("loss");
    if (steps == 1) first = last;
  }
  EXPECT_EQ(steps, kSteps);
  EXPECT_EQ(evaluations, kSteps / 7 + 1);
  EXPECT_NEAR(first, 5.545, 0.3);  // near ln 256
  EXPECT_LT(last, 0.8 * first);
  const auto checkpoint = files_of(runs.last_checkpoint("run"));
  for (const char* name : {"config.json", "model.safetensors", "training.safetensors"}) {
    EXPECT_TRUE(checkpoint.contains(name)) << name;
  }
  const Recipe as_run = load_recipe(runs.path("run"));
  EXPECT_EQ(as_run.steps, kSteps);
  EXPECT_NE(as_run.model.find("norm_eps"), nullptr) << "options of the model that were left out are missing";
}

TEST(FieldReport, P9_TrainedParametersStayInF32) {
  const Runs runs;
  runs.straight("run");
  const auto model = models::load_model(runs.last_checkpoint("run"));
  for (const auto& [name, tensor] : model->named_parameters()) EXPECT_EQ(tensor.dtype(), DType::F32) << name;
  const auto file = io::SafetensorsFile::open(runs.last_checkpoint("run") + "/model.safetensors");
  for (std::size_t i = 0; i < file.size(); ++i) EXPECT_EQ(file.info(i).dtype, DType::F32) << file.info(i).name;
}

// The language models of xLSTM have a configuration of their own.
TEST(Trainer, TrainsTheModelsOfXlstmOnText) {
  const Runs runs;
  for (const char* type : {"xlstm", "xlstm_large"}) {
    Recipe recipe = runs.recipe(4);
    recipe.model = Config::Object{{"type", type}, {"embedding_dim", 16}, {"num_heads", 2}, {"num_blocks", 2}};
    Context ctx = Context::serial();
    Trainer trainer = Trainer::start(ctx, recipe, runs.path(type));
    EXPECT_EQ(run_until(trainer, -1), Outcome::Finished);
    EXPECT_EQ(models::load_model(runs.last_checkpoint(type))->type(), type);
  }
}

TEST(Trainer, GivesTheSameBytesForAnyNumberOfThreads) {
  const Runs runs;
  runs.straight("one", 1);
  runs.straight("two", 2);
  runs.straight("three", 3);
  runs.expect_same_end("two", "one");
  runs.expect_same_end("three", "one");
}

TEST(FieldReport, P39_StopAndResumeIsNotStopping) {
  const Runs runs;
  runs.straight("straight");
  for (const std::int64_t border : {20, 13, 59}) {
    const std::string name = "stopped at " + std::to_string(border), run = runs.path(name);
    {
      Context ctx = Context::serial();
      Trainer trainer = Trainer::start(ctx, runs.recipe(), run);
      EXPECT_EQ(run_until(trainer, border), Outcome::Interrupted);
    }
    Context ctx = Context::parallel(2);
    Trainer trainer = Trainer::resume(ctx, run);
    EXPECT_EQ(trainer.step(), border);
    EXPECT_EQ(run_until(trainer, -1), Outcome::Finished);
    runs.expect_same_end(name, "straight");
  }
}

// 60 steps = 20 and a checkpoint, kill -9 during a later step, and on to 60.
TEST(FieldReport, P39_KilledDuringAStep) {
  const Runs runs;
  start_and_kill(runs, "killed", 27);
  EXPECT_EQ(metrics_of(runs.path("killed")).size(), 30u);
  Context ctx = Context::parallel(2);
  Trainer trainer = Trainer::resume(ctx, runs.path("killed"));
  EXPECT_EQ(trainer.step(), 20);
  EXPECT_EQ(run_until(trainer, -1), Outcome::Finished);
  runs.straight("straight");
  runs.expect_same_end("killed", "straight");
}

TEST(FieldReport, P39_KilledBeforeTheFirstCheckpoint) {
  const Runs runs;
  start_and_kill(runs, "killed", 5);
  Context ctx = Context::serial();
  Trainer trainer = Trainer::resume(ctx, runs.path("killed"));
  EXPECT_EQ(trainer.step(), 0);
  EXPECT_EQ(run_until(trainer, -1), Outcome::Finished);
  runs.straight("straight");
  runs.expect_same_end("killed", "straight");
}

TEST(Trainer, KeepsTheTwoNewestCheckpoints) {
  const Runs runs;
  runs.straight("run");
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(runs.path("run/checkpoints"))) {
    const std::string name = entry.path().filename().native();
    EXPECT_TRUE(name == "step-00000050" || name == "step-00000060") << name;
    ++count;
  }
  EXPECT_EQ(count, 2u);
}

TEST(Trainer, ResumingAFinishedRunChangesNothing) {
  const Runs runs;
  runs.straight("run");
  const auto before = files_of(runs.last_checkpoint("run"));
  const auto metrics = metrics_of(runs.path("run"));
  Context ctx = Context::serial();
  Trainer trainer = Trainer::resume(ctx, runs.path("run"));
  EXPECT_EQ(run_until(trainer, -1), Outcome::Finished);
  EXPECT_EQ(files_of(runs.last_checkpoint("run")), before);
  EXPECT_EQ(metrics_of(runs.path("run")), metrics);
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Trainer, RefusesWhatCannotWorkBeforeAnyWork) {
  const Runs runs;
  Context ctx = Context::serial();
  const auto start = [&](const Recipe& r, const std::string& run) {
    return message_of([&] { Trainer::start(ctx, r, runs.path(run)); });
  };
  Recipe wrong = runs.recipe();
  wrong.length = 5000;
  EXPECT_NE(start(wrong, "a").find("bytes to train on, expected at least 5001"), std::string::npos);
  wrong = runs.recipe();
  wrong.model.set("witdh", 3);
  EXPECT_NE(start(wrong, "a").find("did you mean width?"), std::string::npos);
  wrong = runs.recipe();
  wrong.model.set("type", "forecaster");
  EXPECT_NE(start(wrong, "a").find("type is forecaster, expected causal_lm"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(runs.path("a")));

  EXPECT_NE(start(runs.recipe(), "text/run"), "no error");  // below a file
  const std::string run = runs.path("run");
  {
    const Trainer first = Trainer::start(ctx, runs.recipe(), run);
    EXPECT_NE(message_of([&] { Trainer::resume(ctx, run); }).find("another process is training"), std::string::npos);
  }
  EXPECT_NE(start(runs.recipe(), "run").find("holds a run already"), std::string::npos);
  EXPECT_NE(message_of([&] { Trainer::resume(ctx, runs.path("none")); }).find("holds no run"), std::string::npos);
  EXPECT_NE(message_of([&] { model_folder(run); }).find("holds neither a model"), std::string::npos);
}

TEST(Trainer, RefusesToResumeOnOtherData) {
  const Runs runs;
  runs.straight("run");
  runs.change_text();
  Context ctx = Context::serial();
  EXPECT_NE(message_of([&] { Trainer::resume(ctx, runs.path("run")); }).find("trained on data with BLAKE3"),
            std::string::npos);
}

TEST(Trainer, SkipsStepsThatAreNotFiniteAndGoesOn) {
  const Runs runs;
  Recipe wild = runs.recipe(40);
  wild.schedule = {.peak = 1e3, .warmup = 0, .decay = Decay::Constant, .steps = 40};
  wild.adam.clip_norm = 0;
  Context ctx = Context::serial();
  Trainer trainer = Trainer::start(ctx, wild, runs.path("wild"));
  std::int64_t skipped = 0;
  AfterStep observer([&](const StepMetrics& metrics) { skipped = metrics.skipped; });
  EXPECT_EQ(trainer.run(observer, std::atomic<bool>(false)), Outcome::Finished);
  EXPECT_GT(skipped, 0);
  for (const auto& [name, tensor] : trainer.model().named_parameters()) {
    for (const float x : tensor.span<float>()) ASSERT_TRUE(std::isfinite(x)) << name;
  }
}

}  // namespace
}  // namespace stepwell::train
