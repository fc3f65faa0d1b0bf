// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/config.h"
#include "stepwell/io/file.h"
#include "stepwell/io/json.h"
#include "stepwell/memory/report.h"

#include "tests/cli/run_stepwell.h"
#include "tests/io/well_formed.h"
#include "tests/train/scratch_folder.h"

namespace stepwell::cli {
namespace {

using train::ScratchFolder;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// A report as stepwell/memory/report.h describes it, with numbers made up.
Config made_up_report(const std::string& mode) {
  const bool teacher = mode != "bptt";
  Config report;
  report.set("format", memory::kReportFormat);
  report.set_path("recipe.task.name", "oscillators");
  report.set_path("recipe.train.mode", mode);
  report.set_path("recipe.cell.type", "gated");
  report.set("task", Config::Object{{"name", "oscillators"}, {"answer", "value"}, {"length", 16}});
  report.set("cell", Config::Object{{"type", "gated"}, {"memory_width", 10}, {"parameters", 260}, {"context", 1}});
  report.set("steps", 120);
  report.set("memory", Config::Object{{"variance", teacher ? Config(0.25) : Config()}, {"contraction", 0.93}});
  Config::Array losses, rounds, drift, errors;
  for (int step = 1; step <= 100; ++step) {
    losses.emplace_back(Config::Object{{"step", step}, {"phase", mode}, {"loss", 1.0 / step}, {"dec", 0.9 / step}});
  }
  for (int step = 101; teacher && step <= 120; ++step) {
    losses.emplace_back(Config::Object{{"step", step}, {"phase", "imitation"}, {"loss", 0.1}, {"memory", 0.1}});
  }
  for (int round = 0; teacher && round < 4; ++round) {
    rounds.emplace_back(Config::Object{{"round", round},
                                       {"drift", 0.1 / (1 + round)},
                                       {"drift_over_variance", 0.4 / (1 + round)},
                                       {"memory_loss", 0.01},
                                       {"accepted", round < 2},
                                       {"visited", 1024},
                                       {"restarts", 0},
                                       {"skipped", 0}});
  }
  for (const auto& [first, last] : {std::pair{1, 16}, {17, 32}, {33, 64}, {1, 16}, {45, 64}}) {
    if (!teacher) break;
    drift.emplace_back(Config::Object{{"first", first},
                                      {"last", last},
                                      {"drift", 0.01},
                                      {"over_variance", 0.04},
                                      {"student", 0.03},
                                      {"teacher", 0.02}});
  }
  for (int times : {1, 2, 4}) {
    errors.emplace_back(Config::Object{{"times", times},
                                       {"length", 16 * times},
                                       {"sequences", 64},
                                       {"measure", "mse"},
                                       {"student", 0.03},
                                       {"student_before_refit", 0.04},
                                       {"teacher", teacher ? Config(0.029) : Config()},
                                       {"persistence", 0.077}});
  }
  Config::Array memories, targets, predictions;
  for (int t = 0; t < 32; ++t) {
    Config::Array memory;
    for (int i = 0; i < 10; ++i) memory.emplace_back(std::sin(0.1 * t * (i + 1)));
    memories.emplace_back(memory);
    targets.emplace_back(t % 2 ? Config::Array{0.5} : Config::Array{});
    predictions.emplace_back(Config::Array{0.4});
  }
  report.set("losses", losses);
  report.set("rounds", rounds);
  report.set("drift", drift);
  report.set("errors", errors);
  report.set_path("trajectories.student", memories);
  report.set_path("trajectories.target", targets);
  report.set_path("trajectories.student_prediction", predictions);
  if (teacher) {
    report.set_path("trajectories.teacher", memories);
    report.set_path("trajectories.teacher_prediction", predictions);
  }
  return report;
}

std::string page_of(const ScratchFolder& scratch, std::vector<std::string> runs) {
  const std::string out = scratch.path("page.html");
  for (std::string& run : runs) run = scratch.path(run);
  runs.insert(runs.begin(), "report");
  runs.insert(runs.end(), {"--out", out});
  const CommandResult result = run_stepwell(runs);
  EXPECT_EQ(result.status, 0) << result.err;
  std::string page = io::read_file(out, 1 << 24);
  EXPECT_EQ(io::WellFormed(page).fault(), "");
  return page;
}

TEST(DistillReport, ShowsWhatTheRunLeft) {
  const ScratchFolder scratch;
  scratch.write("run/report.json", io::to_json(made_up_report("joint")));
  const std::string page = page_of(scratch, {"run"});
  for (const char* part : {"Distillation run", "oscillators", "Memories along one held-out sequence", "rolled back",
                           "Drift along held-out sequences", "joint: dec", "imitation: memory", "Prediction along"}) {
    EXPECT_PRED2(contains, page, part);
  }
  EXPECT_EQ(count(page, ">entry "), 8u);
  EXPECT_EQ(count(page, "<circle"), 2u + 16u) << "rounds that were accepted, and targets one by one";
}

TEST(DistillReport, DoesWithoutATeacher) {
  const ScratchFolder scratch;
  scratch.write("run/report.json", io::to_json(made_up_report("bptt")));
  const std::string page = page_of(scratch, {"run"});
  EXPECT_PRED2(contains, page, "bptt: loss");
  EXPECT_EQ(page.find("Rounds of imitation"), std::string::npos);
}

TEST(DistillReport, ComparesRuns) {
  const ScratchFolder scratch;
  scratch.write("a/report.json", io::to_json(made_up_report("joint")));
  scratch.write("b/report.json", io::to_json(made_up_report("bptt")));
  const std::string page = page_of(scratch, {"a", "b"});
  for (const char* part : {"Comparison of 2 distillations", ">a<", ">b<", "train.mode"})
    EXPECT_PRED2(contains, page, part);
}

TEST(DistillReport, SurvivesAnythingThatIsJson) {
  const ScratchFolder scratch;
  const std::string format = std::string("\"format\": \"") + memory::kReportFormat + "\"";
  scratch.write("bare/report.json", "{" + format + "}");
  page_of(scratch, {"bare"});
  scratch.write("odd/report.json",
                "{" + format + R"(, "losses": [{}], "rounds": [{"accepted": 3}], "drift": [{}, {}, {}],
      "errors": [{"times": 1}], "trajectories": {"teacher": [[], [1]], "student": [[1]], "target": [[null, 2]]}})");
  page_of(scratch, {"odd"});
  page_of(scratch, {"odd", "bare"});
  scratch.write("other/report.json", R"({"format": "something else"})");
  EXPECT_EQ(run_stepwell({"report", scratch.path("other")}).status, 1);
  scratch.write("broken/report.json", "{" + format + R"(, "losses": [3]})");
  const CommandResult broken = run_stepwell({"report", scratch.path("broken")});
  EXPECT_EQ(broken.status, 1);
  EXPECT_PRED2(contains, broken.err, "losses");
}

}  // namespace
}  // namespace stepwell::cli
