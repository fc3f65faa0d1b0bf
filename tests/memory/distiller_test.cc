// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/distiller.h"

#include <csignal>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"
#include "stepwell/io/file.h"
#include "stepwell/io/json.h"

#include "tests/memory/small_distillation.h"
#include "tests/train/killed_child.h"
#include "tests/train/scratch_folder.h"
#include "tests/train/small_run.h"

namespace stepwell::memory {
namespace {

class AfterStep : public DistillObserver {
 public:
  explicit AfterStep(std::function<void(std::int64_t)> function) : function_(std::move(function)) {}
  void on_step(const DistillStep& step, std::int64_t) override { function_(step.step); }

 private:
  std::function<void(std::int64_t)> function_;
};

train::Outcome run_until(Distiller& distiller, std::int64_t last) {
  std::atomic<bool> stop{false};
  AfterStep observer([&](std::int64_t step) { stop = step == last; });
  return distiller.run(observer, stop);
}

std::string file_of(const std::string& run, const std::string& name) {
  return io::read_file(io::join_path(run, name), 1 << 24);
}

void expect_same_end(const std::string& a, const std::string& b) {
  EXPECT_EQ(file_of(a, kReportFile), file_of(b, kReportFile));
  EXPECT_EQ(file_of(a, "metrics.jsonl"), file_of(b, "metrics.jsonl"));
  for (const char* step : {"checkpoints/step-00000035", "checkpoints/step-00000025"}) {
    if (io::file_exists(io::join_path(io::join_path(a, step), "distillation.safetensors"))) {
      EXPECT_EQ(train::files_of(io::join_path(a, step)), train::files_of(io::join_path(b, step)));
      return;
    }
  }
  FAIL() << "no last checkpoint";
}

TEST(Distiller, AStoppedOrKilledRunEndsWithTheSameBytes) {
  for (const char* mode : {"frozen", "joint"}) {
    const train::ScratchFolder scratch;
    const std::string straight = scratch.path("straight");
    Context ctx = Context::serial(), parallel = Context::parallel(2);
    Distiller whole = Distiller::start(ctx, small_distillation(mode), straight);
    EXPECT_EQ(run_until(whole, -1), train::Outcome::Finished);
    for (const std::int64_t last : {3, 14, 22}) {
      const std::string stopped = scratch.path("stopped" + std::to_string(last));
      Distiller first = Distiller::start(ctx, small_distillation(mode), stopped);
      EXPECT_EQ(run_until(first, last), train::Outcome::Interrupted);
      {
        const Distiller done = std::move(first);  // closes the folder
      }
      Distiller rest = Distiller::resume(parallel, stopped);
      EXPECT_EQ(rest.distillation().step(), last);
      EXPECT_EQ(run_until(rest, -1), train::Outcome::Finished);
      expect_same_end(straight, stopped);

      const std::string killed = scratch.path("killed" + std::to_string(last));
      EXPECT_TRUE(train::is_killed_in([&] {
        Context own = Context::serial();
        Distiller distiller = Distiller::start(own, small_distillation(mode), killed);
        AfterStep observer([last](std::int64_t step) {
          if (step == last) std::raise(SIGKILL);
        });
        distiller.run(observer, std::atomic<bool>(false));
      }));
      Distiller again = Distiller::resume(ctx, killed);
      EXPECT_LE(again.distillation().step(), last);
      EXPECT_EQ(run_until(again, -1), train::Outcome::Finished);
      expect_same_end(straight, killed);
    }
  }
}

TEST(Distiller, ReportHoldsTheLosses) {
  const train::ScratchFolder scratch;
  Context ctx = Context::serial();
  Distiller distiller = Distiller::start(ctx, small_distillation("joint"), scratch.path("run"));
  run_until(distiller, -1);
  const Config report = io::parse_json(file_of(scratch.path("run"), kReportFile), "report");
  EXPECT_EQ(report, distiller.report());
  const auto& losses = report.find("losses")->as_array("losses");
  ASSERT_EQ(losses.size(), 25U);
  for (const char* key : {"step", "phase", "loss", "dec", "dyn", "dyn_over_variance", "unif"}) {
    EXPECT_NE(losses.front().find(key), nullptr) << key;
  }
  EXPECT_EQ(*losses.back().find("phase"), Config("imitation"));
}

TEST(Distiller, RefusesFoldersOfOtherRuns) {
  const train::ScratchFolder scratch;
  Context ctx = Context::serial();
  EXPECT_THROW(Distiller::resume(ctx, scratch.path("nothing")), Error);
  scratch.write("other/recipe.json", R"({"data": {}, "model": {}, "train": {}})");
  EXPECT_THROW(Distiller::resume(ctx, scratch.path("other")), Error);
  {
    const Distiller first = Distiller::start(ctx, small_distillation("bptt"), scratch.path("run"));
  }
  EXPECT_THROW(Distiller::start(ctx, small_distillation("bptt"), scratch.path("run")), Error);
}

}  // namespace
}  // namespace stepwell::memory
