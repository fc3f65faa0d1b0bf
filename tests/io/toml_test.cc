// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/toml.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"
#include "stepwell/io/file.h"

#include "tests/io/temporary_folder.h"

namespace stepwell {
namespace {

std::string toml_fault(const std::string& text) {
  try {
    io::parse_toml(text, "r.toml");
  } catch (const Error& e) {
    return e.code() == ErrorCode::File ? e.what() : std::string("wrong code: ") + e.what();
  }
  return "";
}

TEST(Toml, ReadsEveryKindAndKeepsTheOrderOfKeys) {
  const Config v = io::parse_toml(R"(
zeta = 1            # a comment
alpha = -2.5
flag = true
text = "a\tb"
list = [1, 2.0, "three", [4]]
dotted.b = 1
dotted.a = 2

[table]
z = 0x10
inner = {y = 1, x = 1_000}

[table.deep]
inf = -inf
)",
                                  "r.toml");
  const Config expected(Config::Object{
      {"zeta", 1},
      {"alpha", -2.5},
      {"flag", true},
      {"text", "a\tb"},
      {"list", Config::Array{1, 2.0, "three", Config::Array{4}}},
      {"dotted", Config::Object{{"b", 1}, {"a", 2}}},
      {"table", Config::Object{{"z", 16},
                               {"inner", Config::Object{{"y", 1}, {"x", 1000}}},
                               {"deep", Config::Object{{"inf", -std::numeric_limits<double>::infinity()}}}}},
  });
  EXPECT_EQ(v, expected);
  EXPECT_EQ(io::parse_toml("", "r.toml"), Config(Config::Object{}));
}

TEST(Toml, SaysWhereAFaultIs) {
  const std::string fault = toml_fault("a = 1\nb = = 2\n");
  EXPECT_EQ(fault.substr(0, 27), "[r.toml] line 2, column 5: ") << fault;
  EXPECT_NE(toml_fault("a = 1\na = 2\n").find("line 2"), std::string::npos);
  EXPECT_NE(toml_fault("a = \"\xFF\"").find("line 1"), std::string::npos);
  EXPECT_NE(toml_fault("a = 99999999999999999999").find("line 1"), std::string::npos);
  EXPECT_EQ(toml_fault("\n\nwhen = 2026-01-02\n"),
            "[r.toml] line 3, column 8: a date or time, expected a string, number, boolean, array or table");
}

TEST(Toml, StopsAtItsDepthLimits) {
  EXPECT_NE(toml_fault("a = " + std::string(100'000, '[')), "");
  std::string key = "a";
  for (int i = 1; i < 32; ++i) key += ".a";
  EXPECT_EQ(toml_fault("x = 'no...key" + std::string(100, '.') + "'\n" + key + " = 1.5 # " + std::string(100, '.')),
            "");
  EXPECT_EQ(toml_fault("x = \"\"\"\n\\\"\"\"\n" + std::string(100, '.') + "\"\"\"\n[" + key + "]\n"), "");
  std::string numbers = "1.0";
  for (int i = 0; i < 100; ++i) numbers += ",1.0";
  EXPECT_EQ(toml_fault("x = [" + numbers + "]"), "");
  EXPECT_EQ(toml_fault("\n" + key + ".a = 1"), "[r.toml] line 2, column 1: a key of more than 32 parts");
  std::string long_key = "a";
  for (int i = 0; i < 200'000; ++i) long_key += ".a";
  EXPECT_NE(toml_fault("[" + long_key + "]").find("more than 32 parts"), std::string::npos);
  std::string inline_tables = "x";
  for (int i = 0; i < 1000; ++i) inline_tables += " = {" + key;
  EXPECT_NE(toml_fault(inline_tables), "");
}

TEST(Toml, RefusesTextsOverItsLimit) {
  EXPECT_EQ(toml_fault(std::string(1 << 20, ' ')), "");
  EXPECT_NE(toml_fault(std::string((1 << 20) + 1, ' ')).find("expected at most 1048576"), std::string::npos);
}

TEST(Toml, ReadsFiles) {
  TemporaryFolder folder;
  io::write_file(folder.file("r.toml"), "a = 1");
  EXPECT_EQ(io::read_toml(folder.file("r.toml")), Config(Config::Object{{"a", 1}}));
  io::write_file(folder.file("r.toml"), "a");
  EXPECT_THROW(io::read_toml(folder.file("r.toml")), Error);
  EXPECT_THROW(io::read_toml(folder.file("none.toml")), Error);
}

}  // namespace
}  // namespace stepwell
