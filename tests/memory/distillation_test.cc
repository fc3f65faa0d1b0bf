// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/distillation.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/memory/examples.h"
#include "tests/memory/small_distillation.h"

namespace stepwell::memory {
namespace {

// Trains to the end; the steps on the way.
std::vector<DistillStep> run(Distillation& d) {
  std::vector<DistillStep> steps;
  while (!d.done()) steps.push_back(d.advance());
  return steps;
}

TEST(Distillation, EveryModeHasItsPhases) {
  Context ctx = Context::serial();
  const auto phases = [&ctx](const char* mode) {
    Distillation d(ctx, small_distillation(mode));
    std::string all;
    for (const DistillStep& step : run(d)) {
      EXPECT_TRUE(std::isfinite(step.loss));
      if (all.find(step.phase) == std::string::npos) all += std::string(step.phase) + " ";
    }
    return all;
  };
  EXPECT_EQ(phases("frozen"), "teacher cloning imitation ");
  EXPECT_EQ(phases("joint"), "joint imitation ");
  EXPECT_EQ(phases("bptt"), "bptt ");
}

TEST(Distillation, SameBitsForAnyThreadsAndWhenResumedAtAnyStep) {
  for (const char* mode : {"frozen", "joint", "bptt"}) {
    Context ctx = Context::serial(), parallel = Context::parallel(3);
    Distillation straight(ctx, small_distillation(mode)), threaded(parallel, small_distillation(mode));
    run(straight);
    run(threaded);
    EXPECT_TRUE(differing(straight.state(), threaded.state()).empty()) << mode;
    EXPECT_EQ(straight.report(), threaded.report()) << mode;
    for (const std::int64_t stop : {1, 9, 21, 27, 33}) {
      Distillation before(ctx, small_distillation(mode)), after(ctx, small_distillation(mode));
      while (before.step() < stop && !before.done()) before.advance();
      after.set_state(before.state());
      run(after);
      EXPECT_TRUE(differing(straight.state(), after.state()).empty()) << mode << " " << stop;
    }
  }
}

TEST(Distillation, TakesATaskAndACellOfOnesOwn) {
  Context ctx = Context::serial();
  const DistillRecipe recipe = small_distillation("joint");
  Distillation named(ctx, recipe);
  auto cell = make_updater("gated", 6, 3, 3, {}, Rng(static_cast<std::uint64_t>(recipe.seed)).stream("cell"));
  const MemoryUpdater* own = cell.get();
  DistillRecipe free = recipe;
  free.task = "something else";
  free.memory_width = 0;
  Distillation given(ctx, free, train::make_sequence_task("oscillators"), std::move(cell));
  run(named);
  run(given);
  EXPECT_EQ(&given.cell(), own);
  EXPECT_TRUE(differing(named.state(), given.state()).empty());
}

TEST(Distillation, DetachKeepsTheDynamicsFromTheTeacher) {
  Context ctx = Context::serial();
  const auto teacher_after = [&ctx](bool detach, double dynamics) {
    Config config = small_distillation("joint").to_config();
    config.set_path("train.detach", detach);
    config.set_path("train.dynamics", dynamics);
    Distillation d(ctx, DistillRecipe::read(config));
    d.advance();
    return d.teacher()->named_parameters();
  };
  // Clipping is by the whole gradient's size, so that compare directions at a first step of Adam: by sign.
  const layers::NamedTensors without = teacher_after(true, 0), detached = teacher_after(true, 1e-6),
                             attached = teacher_after(false, 1e6);
  EXPECT_TRUE(differing(without, detached).empty());
  EXPECT_FALSE(differing(without, attached).empty());
}

TEST(Distillation, RoundsWithoutProgressAreRolledBack) {
  Context ctx = Context::serial();
  Config config = small_distillation("frozen").to_config();
  config.set_path("imitation.lr", 10.0);  // destroys whatever it touches
  config.set_path("imitation.patience", 2);
  config.set_path("imitation.refit", false);
  Distillation d(ctx, DistillRecipe::read(config));
  while (d.step() < 20) d.advance();
  const layers::NamedTensors before = bits_of(d.cell());
  run(d);
  ASSERT_EQ(d.rounds().size(), 3U);
  EXPECT_TRUE(d.rounds()[0].accepted);
  EXPECT_FALSE(d.rounds()[1].accepted || d.rounds()[2].accepted);
  EXPECT_GT(d.rounds()[1].drift, d.rounds()[0].drift);
  EXPECT_TRUE(differing(before, bits_of(d.cell())).empty());
}

TEST(Distillation, ImitationLowersTheDriftAndTheRefitTheError) {
  Context ctx = Context::serial();
  Config config = small_distillation("frozen").to_config();
  config.set_path("train.teacher_steps", 150);
  config.set_path("train.steps", 150);
  config.set_path("imitation.steps", 60);
  config.set_path("imitation.rounds", 4);
  Distillation d(ctx, DistillRecipe::read(config));
  run(d);
  double best = d.rounds()[0].drift;
  for (const RoundReport& round : d.rounds()) {
    if (round.accepted) best = round.drift;
  }
  EXPECT_LT(best, d.rounds()[0].drift);
  const Config report = d.report();
  for (const Config& row : report.find("errors")->as_array("errors")) {
    EXPECT_LT(row.find("student")->as_double("student"), row.find("student_before_refit")->as_double("before"));
  }
}

// The recipes' figures in small: a memory that a cell keeps far beyond its teacher's window.
TEST(Distillation, DriftStaysAndPredictionsEqualTheTeachersFarBeyondItsWindow) {
  Context ctx = Context::serial();
  for (const char* task : {"regimes", "oscillators"}) {
    SCOPED_TRACE(task);
    Config config = small_distillation("joint").to_config();
    config.set("task", Config::Object{{"name", task}, {"length", 64}});
    config.set("teacher", Config::Object{{"window", 16}, {"embed_width", 16}, {"recency", true}, {"bound", "tanh"}});
    config.set_path("cell.memory_width", 16);
    config.set_path("train.steps", 500);
    config.set_path("train.batch", 32);
    config.set_path("imitation.steps", 50);
    config.set_path("imitation.rounds", 4);
    config.set_path("imitation.beta", 0);
    config.set_path("imitation.capacity", 10000);
    config.set_path("imitation.sequences", 16);
    config.set_path("evaluate.sequences", 32);
    config.set_path("evaluate.drift_length", 400);
    Distillation d(ctx, DistillRecipe::read(config));
    run(d);
    const Config report = d.report();
    const auto& drift = report.find("drift")->as_array("drift");
    const Config &early = drift[drift.size() - 2], &late = drift.back();
    ASSERT_EQ(*early.find("last"), Config(16));
    ASSERT_EQ(*late.find("first"), Config(301));
    EXPECT_LE(late.find("drift")->as_double("late"), 1.5 * early.find("drift")->as_double("early"));
    EXPECT_LE(late.find("student")->as_double("student"), 1.25 * late.find("teacher")->as_double("teacher"));
    const Config& longest = report.find("errors")->as_array("errors").back();
    EXPECT_LT(longest.find("student")->as_double("student"), longest.find("persistence")->as_double("persistence"));
  }
}

TEST(Distillation, TheNeedleIsRememberedFarBeyondTheTrainedLength) {
  Context ctx = Context::serial();
  Config config = small_distillation("joint").to_config();
  config.set("task", Config::Object{{"name", "needle"}, {"length", 24}});
  config.set("teacher", Config::Object{{"window", 24}, {"embed_width", 16}, {"bound", "tanh"}});
  config.set_path("cell.memory_width", 16);
  config.set_path("train.steps", 1200);
  config.set_path("train.batch", 32);
  config.set_path("evaluate.sequences", 64);
  config.set_path("evaluate.times", Config::Array{1, 2, 4});
  Distillation d(ctx, DistillRecipe::read(config));
  run(d);
  const Config report = d.report();
  for (const Config& row : report.find("errors")->as_array("errors")) {
    EXPECT_GE(row.find("student")->as_double("student"), 0.95) << row.find("length")->as_integer("length");
  }
}

TEST(Distillation, EveryTaskRuns) {
  Context ctx = Context::serial();
  for (const train::SequenceTaskRow& row : train::sequence_tasks()) {
    SCOPED_TRACE(row.name);
    Config config = small_distillation("joint").to_config();
    config.set("task", Config::Object{{"name", std::string(row.name)}, {"length", 12}});
    config.set_path("train.horizon", 3);
    Distillation d(ctx, DistillRecipe::read(config));
    run(d);
    const Config report = d.report();
    EXPECT_EQ(report.find("errors")->as_array("errors").size(), 2U);
  }
}

TEST(Distillation, ReportHasWhatItsHeaderSays) {
  Context ctx = Context::serial();
  Distillation d(ctx, small_distillation("joint"));
  run(d);
  const Config report = d.report();
  for (const char* key :
       {"format", "recipe", "task", "cell", "steps", "memory", "rounds", "drift", "errors", "trajectories"}) {
    EXPECT_NE(report.find(key), nullptr) << key;
  }
  const auto& drift = report.find("drift")->as_array("drift");
  ASSERT_EQ(drift.size(), 6U);  // 1–6, 7–12, 13–24, 25–40, then the first window and the last steps
  EXPECT_EQ(*drift[3].find("first"), Config(25));
  EXPECT_EQ(*drift[3].find("last"), Config(40));
  EXPECT_EQ(*drift[5].find("first"), Config(31));
  const Config& trajectories = *report.find("trajectories");
  for (const char* key : {"teacher", "student", "target", "teacher_prediction", "student_prediction"}) {
    ASSERT_NE(trajectories.find(key), nullptr) << key;
    EXPECT_EQ(trajectories.find(key)->as_array(key).size(), 40U) << key;
  }
  EXPECT_EQ(DistillRecipe::read(*report.find("recipe")).to_config(), *report.find("recipe"));
}

TEST(Distillation, RefusesWhatCannotWork) {
  Context ctx = Context::serial();
  const auto with = [&ctx](const char* key, const Config& value) {
    Config config = small_distillation("joint").to_config();
    config.set_path(key, value);
    return error_of([&] { Distillation(ctx, DistillRecipe::read(config)); });
  };
  EXPECT_NE(with("teacher.bound", "none").find("bound"), std::string::npos);
  EXPECT_NE(with("teacher.memory_width", 3).find("[cell]"), std::string::npos);
  EXPECT_NE(with("task.name", "neddle").find("needle"), std::string::npos);
  EXPECT_NE(with("task.colour", 1).find("colour"), std::string::npos);
  EXPECT_NE(with("cell.hidden", 3).find("hidden"), std::string::npos);
  EXPECT_NE(with("train.mode", "both").find("joint"), std::string::npos);
  EXPECT_EQ(with("cell.type", "gated"), "");
}

}  // namespace
}  // namespace stepwell::memory
