// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/json.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"
#include "stepwell/io/file.h"

#include "tests/io/temporary_folder.h"

namespace stepwell {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string json_fault(const std::string& text, io::JsonDialect dialect = io::JsonDialect::Strict) {
  try {
    io::parse_json(text, "f.json", dialect);
  } catch (const Error& e) {
    return e.code() == ErrorCode::File ? e.what() : std::string("wrong code: ") + e.what();
  }
  return "";
}

double number(const std::string& text) { return io::parse_json(text, "f.json").as_double("number"); }

TEST(Json, ReadsEveryKindAndKeepsTheOrderOfKeys) {
  const Config v =
      io::parse_json(R"( {"z": null, "a": [true, false, 1, -2.5e1, "t\n"], "o": {"": {}}, "e": []} )", "f");
  ASSERT_TRUE(v.is_object());
  const auto& members = v.as_object("v");
  EXPECT_EQ(members[0].first, "z");
  EXPECT_TRUE(members[0].second.is_null());
  EXPECT_EQ(members[1].second, Config(Config::Array{true, false, 1, -25.0, "t\n"}));
  EXPECT_EQ(members[2].second, Config(Config::Object{{"", Config::Object{}}}));
  EXPECT_EQ(members[3].second, Config(Config::Array{}));
}

TEST(Json, TellsIntegersFromDoubles) {
  EXPECT_EQ(io::parse_json("9223372036854775807", "f"), Config(std::int64_t{9223372036854775807}));
  EXPECT_EQ(io::parse_json("-9223372036854775808", "f"), Config(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(io::parse_json("9223372036854775808", "f"), Config(0x1p63));
  EXPECT_EQ(io::parse_json("1.0", "f"), Config(1.0));
  EXPECT_EQ(io::parse_json("1e0", "f"), Config(1.0));
  EXPECT_EQ(number("5e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(number("1.7976931348623157e308"), std::numeric_limits<double>::max());
  EXPECT_NE(json_fault("1e400"), "");
}

TEST(Json, SaysWhereAFaultIs) {
  EXPECT_EQ(json_fault(""), "[f.json] line 1, column 1: the text ends");
  EXPECT_EQ(json_fault("{\n \"a\": tru }"), "[f.json] line 2, column 7: expected a value");
  EXPECT_EQ(json_fault("[1 2]"), "[f.json] line 1, column 4: expected ',' or ']'");
  EXPECT_EQ(json_fault("[1]]"), "[f.json] line 1, column 4: text after the end of the value");
  EXPECT_EQ(json_fault("{a: 1}"), "[f.json] line 1, column 2: expected a key in quotes");
  EXPECT_EQ(json_fault("{\"a\" 1}"), "[f.json] line 1, column 6: expected ':'");
  EXPECT_EQ(json_fault("{\"a\": 1, \"b\": 2, \"a\": 3}"), "[f.json] line 1, column 1: key \"a\" twice in this object");
  EXPECT_EQ(json_fault("['a']"), "[f.json] line 1, column 2: expected a value");
  EXPECT_EQ(json_fault("[\"a"), "[f.json] line 1, column 2: this string does not end");
  EXPECT_EQ(json_fault("[\"\xFF\"]"), "[f.json] line 1, column 3: not UTF-8");
  EXPECT_EQ(json_fault(std::string("[1\0]", 4)), "[f.json] line 1, column 3: expected ',' or ']'");
}

TEST(Json, StopsAtItsDepthLimit) {
  auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_EQ(json_fault(nested(100)), "");
  EXPECT_NE(json_fault(nested(102)).find("more than 100 levels"), std::string::npos);
  EXPECT_NE(json_fault(std::string(1'000'000, '[')).find("more than 100 levels"), std::string::npos);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_NE(json_fault(objects).find("more than 100 levels"), std::string::npos);
}

TEST(Json, RefusesTextsOverItsLimit) {
  EXPECT_EQ(json_fault(std::string((16 << 20) - 1, ' ') + "1"), "");
  EXPECT_NE(json_fault(std::string(16 << 20, ' ') + "1").find("expected at most 16777216"), std::string::npos);
}

TEST(Json, WritesWhatItReads) {
  const Config v(Config::Object{
      {"null", Config()},
      {"flags", Config::Array{true, false}},
      {"numbers", Config::Array{0, -7, 0.0, -0.0, 1.0, 0.1, 1e300, 1e-300, 5e-324, 123456789012345678.0}},
      {"infinite", Config::Array{kInfinity, -kInfinity}},
      {"text", "quote \" backslash \\ newline \n nul \x01 \xF0\x9F\x98\x80"},
      {"nested", Config::Array{Config::Object{{"a", Config::Array(1, Config::Array())}}, Config::Object{}}},
      {"", ""},
  });
  for (const int indent : {0, 1, 2, 4}) {
    const std::string text = io::to_json(v, indent);
    EXPECT_EQ(io::parse_json(text, "f"), v) << text;
    EXPECT_EQ(io::to_json(io::parse_json(text, "f"), indent), text);
    EXPECT_EQ(text.find('\n') == std::string::npos, indent == 0);
  }
}

TEST(Json, WritesTheBitsOfEveryDouble) {
  std::mt19937_64 engine(3);
  for (int i = 0; i < 20'000; ++i) {
    const auto x = std::bit_cast<double>(engine());
    if (!std::isfinite(x)) continue;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(number(io::to_json(x))), std::bit_cast<std::uint64_t>(x)) << x;
  }
}

TEST(Json, LaysOutForReaders) {
  const Config v(Config::Object{
      {"a", Config::Array{1, 2.5}}, {"b", Config::Object{{"c", Config::Array(1, Config::Array())}}}, {"d", kInfinity}});
  EXPECT_EQ(io::to_json(v), R"({
  "a": [1, 2.5],
  "b": {
    "c": [
      []
    ]
  },
  "d": {"__float__": "Infinity"}
})");
  EXPECT_EQ(io::to_json(v, 0), R"({"a":[1,2.5],"b":{"c":[[]]},"d":{"__float__":"Infinity"}})");
}

TEST(Json, RefusesToWriteTextThatIsNotUtf8) {
  EXPECT_THROW(io::to_json("\xFF"), Error);
  try {
    io::to_json("a\xFF.txt");
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("\"a\\xff.txt\" is not UTF-8"), std::string::npos) << error.what();
  }
  EXPECT_THROW(io::to_json(Config::Object{{"\xC0\x80", 1}}), Error);
}

TEST(Json, ReadsFiles) {
  TemporaryFolder folder;
  io::write_file(folder.file("c.json"), "{\"a\": 1,}");
  try {
    io::read_json(folder.file("c.json"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), "[" + folder.file("c.json") + "] line 1, column 9: a comma before '}'");
  }
}

TEST(FieldReport, P43_BareInfinityInConfigJson) {
  const std::string text = R"({"time_step_limit": [0.0, Infinity], "low": -Infinity, "none": NaN, "name": "Infinity-7B",
                               "Infinity": "NaN, -Infinity", "escaped": "\"Infinity"})";
  const Config v = io::parse_json(text, "config.json", io::JsonDialect::Config);
  EXPECT_EQ(*v.find("time_step_limit"), Config(Config::Array{0.0, kInfinity}));
  EXPECT_EQ(v.find("low")->as_double("low"), -kInfinity);
  EXPECT_TRUE(std::isnan(v.find("none")->as_double("none")));
  EXPECT_EQ(v.find("name")->as_string("name"), "Infinity-7B");
  EXPECT_EQ(v.find("Infinity")->as_string("Infinity"), "NaN, -Infinity");
  EXPECT_EQ(v.find("escaped")->as_string("escaped"), "\"Infinity");

  EXPECT_EQ(json_fault(text), "[f.json] line 1, column 27: Infinity is no JSON number");
  for (const char* bad : {"Infinit", "Infinityx", "- Infinity", "+Infinity", "infinity", "nan", "NaN0", "--Infinity"}) {
    EXPECT_NE(json_fault(bad, io::JsonDialect::Config), "") << bad;
  }
}

TEST(FieldReport, P43_EncodedInfinityOfNewerCheckpoints) {
  const Config v = io::parse_json(R"([{"__float__": "Infinity"}, {"__float__": "-Infinity"}])", "f");
  EXPECT_EQ(v, Config(Config::Array{kInfinity, -kInfinity}));
  EXPECT_TRUE(std::isnan(io::parse_json(R"({"__float__": "NaN"})", "f").as_double("v")));
  for (const char* other : {R"({"__float__": "inf"})", R"({"__float__": 1})", R"({"__float__": "NaN", "b": 1})"}) {
    EXPECT_TRUE(io::parse_json(other, "f").is_object()) << other;
  }
}

TEST(FieldReport, P43_SavingWritesStandardJson) {
  const std::string text = io::to_json(io::parse_json("[Infinity, -Infinity, NaN]", "f", io::JsonDialect::Config), 0);
  EXPECT_EQ(text, R"([{"__float__":"Infinity"},{"__float__":"-Infinity"},{"__float__":"NaN"}])");
}

TEST(FieldReport, P43_CommentsAndTrailingCommasAreNamed) {
  for (const auto dialect : {io::JsonDialect::Strict, io::JsonDialect::Config}) {
    EXPECT_EQ(json_fault("[1, 2,]", dialect), "[f.json] line 1, column 7: a comma before ']'");
    EXPECT_EQ(json_fault("{\"a\": 1,\n}", dialect), "[f.json] line 2, column 1: a comma before '}'");
    EXPECT_EQ(json_fault("{\"a\": 1 // one\n}", dialect), "[f.json] line 1, column 9: JSON has no comments");
    EXPECT_EQ(json_fault("// first\n{}", dialect), "[f.json] line 1, column 1: JSON has no comments");
    EXPECT_EQ(json_fault("{} # last", dialect), "[f.json] line 1, column 4: text after the end of the value");
  }
}

}  // namespace
}  // namespace stepwell
