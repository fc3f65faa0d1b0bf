// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/recipe.h"

#include <string>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"

namespace stepwell::train {
namespace {

Config with(const char* key, Config value) {
  Config config;
  config.set_path("data.text", "/usr/share/common-licenses");
  config.set_path(key, std::move(value));
  return config;
}

std::string message_of(const Config& config) {
  try {
    Recipe::read(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Config);
    return error.what();
  }
  return "no error";
}

TEST(Recipe, ReadsWhatItWrites) {
  Config config = with("data.hold_out", "MPL*");
  config.set_path("model.width", 32);
  config.set_path("model.mixer_options.d_state", 4);
  config.set_path("train.steps", 77);
  config.set_path("train.lr", 0.25);
  config.set_path("train.schedule", "constant");
  config.set_path("train.accumulate", 3);
  const Recipe recipe = Recipe::read(config);
  EXPECT_EQ(recipe.steps, 77);
  EXPECT_EQ(recipe.schedule.steps, 77);
  EXPECT_EQ(recipe.schedule.peak, 0.25);
  EXPECT_EQ(recipe.schedule.decay, Decay::Constant);
  EXPECT_EQ(recipe.hold_out, "MPL*");
  const Config complete = recipe.to_config();
  EXPECT_EQ(Recipe::read(complete).to_config(), complete);
  EXPECT_EQ(*complete.find("model"), *config.find("model"));
}

TEST(Recipe, MakesPathsAbsolute) {
  Config config;
  config.set_path("data.csv", "somewhere/data.csv");
  config.set_path("data.column", "x");
  const Config complete = Recipe::read(config).to_config();
  EXPECT_TRUE(complete.find("data")->find("csv")->as_string("").starts_with("/"));
}

TEST(Recipe, SpellsOutTheOptionsOfATask) {
  Config config;
  config.set_path("data.task", "copy");
  config.set_path("data.held_out", 12);
  const Config complete = Recipe::read(config).to_config();
  EXPECT_EQ(complete.find("data")->find("task_options")->find("width")->as_integer(""), 1);
  EXPECT_EQ(Recipe::read(complete).held_out, 12);
  EXPECT_EQ(Recipe::read(complete).to_config(), complete);
}

TEST(Recipe, SuggestsTheNearestKey) {
  EXPECT_NE(message_of(with("train.step", 5)).find("unknown key step, did you mean steps?"), std::string::npos);
  EXPECT_NE(message_of(with("data.holdout", "x")).find("did you mean hold_out?"), std::string::npos);
  EXPECT_NE(message_of(with("trian.steps", 5)).find("did you mean train?"), std::string::npos);
}

TEST(Recipe, RefusesNonsense) {
  EXPECT_NE(message_of(with("train.lr", -1)).find("lr = -1"), std::string::npos);
  EXPECT_NE(message_of(with("train.lr", "fast")).find("expected a number"), std::string::npos);
  EXPECT_NE(message_of(with("train.batch", 0)).find("batch = 0"), std::string::npos);
  EXPECT_NE(message_of(with("train.length", -3)).find("length = -3"), std::string::npos);
  EXPECT_NE(message_of(with("train.schedule", "linear")).find("one of constant, cosine"), std::string::npos);
  EXPECT_NE(message_of(with("data.hold_out_fraction", 1.5)).find("hold_out_fraction"), std::string::npos);
  EXPECT_NE(message_of(with("data.text", 3)).find("expected an array"), std::string::npos);
  EXPECT_NE(message_of(with("data.csv", "x.csv")).find("more than one of text, csv"), std::string::npos);
  EXPECT_NE(message_of(with("data.column", "x")).find("go together"), std::string::npos);
  EXPECT_NE(message_of(with("data.task", "copy")).find("more than one"), std::string::npos);
  EXPECT_NE(message_of(with("data.held_out", 5)).find("go with task"), std::string::npos);
  EXPECT_NE(message_of(Config()).find("no text, csv or task"), std::string::npos);
}

}  // namespace
}  // namespace stepwell::train
