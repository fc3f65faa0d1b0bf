// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/config.h"

#include <array>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace stepwell {
namespace {

Config object(Config::Object members) { return Config(std::move(members)); }

// What f() throws; "" if nothing.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Config);
    return error.what();
  }
  return "";
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Config, HoldsWhatJsonAndTomlHold) {
  EXPECT_TRUE(Config().is_null());
  EXPECT_TRUE(Config(true).as_bool("x"));
  EXPECT_EQ(Config(7).as_integer("x"), 7);
  EXPECT_EQ(Config(7).as_double("x"), 7.0);
  EXPECT_EQ(Config(2.5).as_double("x"), 2.5);
  EXPECT_EQ(Config("word").as_string("x"), "word");
  EXPECT_EQ(Config(Config::Array{1, "two"}).as_array("x")[1].as_string("x"), "two");
  EXPECT_FALSE(Config(true).is_integer());
  EXPECT_FALSE(Config(true).is_number());
  EXPECT_FALSE(Config(2.0).is_integer());
}

TEST(Config, AWrongKindIsAnErrorThatNamesThePlaceAndTheValue) {
  const std::string message = message_of([] { Config("word").as_integer("model.layers"); });
  EXPECT_TRUE(contains(message, "[model.layers]")) << message;
  EXPECT_TRUE(contains(message, "\"word\"")) << message;
  EXPECT_TRUE(contains(message, "an integer")) << message;
  EXPECT_NE(message_of([] { Config(1).as_bool("x"); }), "");
  EXPECT_NE(message_of([] { Config(1.5).as_integer("x"); }), "");
  EXPECT_NE(message_of([] { Config(true).as_double("x"); }), "");
  EXPECT_NE(message_of([] { Config().as_string("x"); }), "");
  EXPECT_NE(message_of([] { Config(1).as_array("x"); }), "");
  EXPECT_NE(message_of([] { Config(Config::Array{}).as_object("x"); }), "");
}

TEST(Config, SetsMembersAndDottedPaths) {
  Config c;
  c.set("a", 1);
  c.set("a", 2);
  c.set_path("model.layers.count", 3);
  c.set_path("model.width", 64);
  EXPECT_EQ(c.find("a")->as_integer("a"), 2);
  EXPECT_EQ(c.find("model")->find("layers")->find("count")->as_integer("count"), 3);
  EXPECT_EQ(c.find("model")->find("width")->as_integer("width"), 64);
  EXPECT_EQ(c.find("missing"), nullptr);
  EXPECT_EQ(Config(3).find("a"), nullptr);
  EXPECT_NE(message_of([&] { c.set_path("a.b", 1); }), "") << "a is a number, not an object";
  const Config expected = object({{"a", 2}, {"model", object({{"layers", object({{"count", 3}})}, {"width", 64}})}});
  EXPECT_EQ(c, expected);
}

TEST(ConfigReader, ReadsValuesAndFallsBack) {
  ConfigReader reader(object({{"flag", true}, {"n", 5}, {"rate", 1}, {"name", "x"}, {"nothing", Config()}}), "recipe");
  EXPECT_TRUE(reader.boolean("flag", false));
  EXPECT_FALSE(reader.boolean("other", false));
  EXPECT_EQ(reader.integer("n", 1, 0, 10), 5);
  EXPECT_EQ(reader.integer("missing", 1, 0, 10), 1);
  EXPECT_EQ(reader.number("rate", 0.5, 0, 1), 1.0);
  EXPECT_EQ(reader.text("name", ""), "x");
  EXPECT_FALSE(reader.has("nothing")) << "null counts as absent";
  EXPECT_EQ(reader.text("nothing", "default"), "default");
  EXPECT_NO_THROW(reader.finish());
}

TEST(ConfigReader, ValuesOutsideTheirRangeAreErrorsWithTheRange) {
  ConfigReader reader(
      object({{"n", 11}, {"rate", 1.5}, {"word", "x"}, {"nan", std::numeric_limits<double>::quiet_NaN()}}), "recipe");
  std::string message = message_of([&] { reader.integer("n", 1, 0, 10); });
  EXPECT_TRUE(contains(message, "[recipe] n = 11, expected an integer from 0 to 10")) << message;
  message = message_of([&] { reader.number("rate", 0.5, 0, 1); });
  EXPECT_TRUE(contains(message, "[recipe] rate = 1.5")) << message;
  EXPECT_TRUE(contains(message, "a number from 0 to 1")) << message;
  EXPECT_NE(message_of([&] { reader.number("nan", 0.5, 0, 1); }), "");
  EXPECT_NE(message_of([&] { reader.integer("rate", 1, 0, 10); }), "");
  EXPECT_NE(message_of([&] { reader.integer("word", 1, 0, 10); }), "");
  EXPECT_NE(message_of([&] { reader.boolean("n", false); }), "");
  EXPECT_NE(message_of([&] { reader.text("n", ""); }), "");
  EXPECT_NE(message_of([&] { reader.child("n"); }), "");
  EXPECT_NE(message_of([&] { reader.list("n"); }), "");
}

TEST(ConfigReader, ChoicesListWhatIsAllowed) {
  constexpr std::array<std::string_view, 3> kChoices = {"constant", "cosine", "linear"};
  ConfigReader reader(object({{"schedule", "cosine"}, {"other", "sine"}}), "train");
  EXPECT_EQ(reader.choice("schedule", "constant", kChoices), 1);
  EXPECT_EQ(reader.choice("missing", "linear", kChoices), 2);
  const std::string message = message_of([&] { reader.choice("other", "constant", kChoices); });
  EXPECT_TRUE(contains(message, "other = \"sine\", expected one of constant, cosine, linear")) << message;
}

TEST(ConfigReader, AnUnknownKeySuggestsTheNearestKnownOne) {
  ConfigReader reader(object({{"learning_rat", 1}}), "train");
  reader.number("learning_rate", 1e-3, 0, 1);
  reader.integer("steps", 1, 0, 10);
  const std::string message = message_of([&] { reader.finish(); });
  EXPECT_TRUE(contains(message, "[train] unknown key learning_rat, did you mean learning_rate?")) << message;
  EXPECT_TRUE(contains(message, "known: learning_rate, steps")) << message;

  ConfigReader strange(object({{"zzzzzzz", 1}}), "train");
  strange.ignore("steps");
  EXPECT_FALSE(contains(message_of([&] { strange.finish(); }), "did you mean"));
  ConfigReader ignored(object({{"steps", 1}}), "train");
  ignored.ignore("steps");
  EXPECT_NO_THROW(ignored.finish());
}

TEST(ConfigReader, NeedsAnObjectOrNothing) {
  EXPECT_NO_THROW(ConfigReader(Config(), "x").finish());
  EXPECT_NE(message_of([] { ConfigReader(Config(3), "x"); }), "");
}

TEST(NearestName, IsTheClosestWordWithinAThird) {
  const std::vector<std::string> words = {"hidden_size", "num_layers", "vocab_size"};
  EXPECT_EQ(nearest_name("hiden_size", words), "hidden_size");
  EXPECT_EQ(nearest_name("vocabsize", words), "vocab_size");
  EXPECT_EQ(nearest_name("num_layer", words), "num_layers");
  EXPECT_EQ(nearest_name("dropout", words), "");
  EXPECT_EQ(nearest_name("", words), "");
  EXPECT_EQ(nearest_name("x", std::vector<std::string>{}), "");
}

}  // namespace
}  // namespace stepwell
