// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "train/run_folder.h"

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"
#include "stepwell/io/file.h"

#include "tests/train/killed_child.h"
#include "tests/train/scratch_folder.h"
#include "tests/train/small_run.h"

namespace stepwell::train {
namespace {

Config line(std::int64_t step) { return Config(Config::Object{{"step", step}}); }

void write_number(const std::string& folder, int n) {
  io::write_file(io::join_path(folder, "number"), std::to_string(n));
}

// Kill −9 during a save: what was saved before still loads, and what the save left is cleared away.
TEST(FieldReport, P39_KilledDuringASave) {
  const ScratchFolder scratch;
  const std::string path = scratch.path("run");
  RunFolder::create(path, Config(Config::Object{})).save_checkpoint(10, [](const std::string& folder) {
    write_number(folder, 10);
  });
  EXPECT_TRUE(is_killed_in([&] {
    RunFolder::open(path).save_checkpoint(20, [](const std::string& folder) {
      write_number(folder, 20);
      std::raise(SIGKILL);
    });
  }));
  EXPECT_EQ(RunFolder::checkpoints(path), std::vector<std::int64_t>{10});
  EXPECT_EQ(files_of(RunFolder::checkpoint_folder(path, 10)).at("number"), "10");
  auto entries = [&] {
    return std::distance(std::filesystem::directory_iterator(path + "/checkpoints"),
                         std::filesystem::directory_iterator());
  };
  EXPECT_EQ(entries(), 2);
  RunFolder run = RunFolder::open(path);
  EXPECT_EQ(entries(), 1);
  run.save_checkpoint(20, [](const std::string& folder) { write_number(folder, 20); });
  EXPECT_EQ(RunFolder::checkpoints(path), (std::vector<std::int64_t>{10, 20}));
}

TEST(RunFolder, CutsMetricsAtTheCheckpointsStep) {
  const ScratchFolder scratch;
  const std::string path = scratch.path("run");
  {
    RunFolder run = RunFolder::create(path, Config(Config::Object{}));
    for (std::int64_t step = 1; step <= 5; ++step) run.append_metrics(line(step));
  }
  scratch.write("run/metrics.jsonl",
                io::read_file(path + "/metrics.jsonl", 1000) + "{\"step\":6,\"lo");  // torn by a crash
  RunFolder run = RunFolder::open(path);
  run.continue_metrics(3);
  run.append_metrics(line(4));
  EXPECT_EQ(metrics_of(path), (std::vector<Config>{line(1), line(2), line(3), line(4)}));
}

TEST(RunFolder, IsNotSharedAndNotOverwritten) {
  const ScratchFolder scratch;
  const std::string path = scratch.path("run");
  const Config recipe(Config::Object{{"a", 1}});
  {
    const RunFolder run = RunFolder::create(path, recipe);
    EXPECT_THROW(RunFolder::open(path), Error);
  }
  EXPECT_THROW(RunFolder::create(path, recipe), Error);
  EXPECT_THROW(RunFolder::open(scratch.path("")), Error);
  EXPECT_EQ(RunFolder::read_recipe(path), recipe);
  EXPECT_TRUE(RunFolder::checkpoints(path).empty());
}

}  // namespace
}  // namespace stepwell::train
