// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "io/json_lexer.h"

#include <string>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"

namespace stepwell {
namespace {

std::string number_fault(const char* text) {
  try {
    io::JsonLexer lexer(text, "f");
    lexer.number();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(JsonLexer, ReadsNumbersOfTheGrammarOnly) {
  for (const char* good : {"0", "-0", "10", "1.5", "-1.25e+3", "1E5", "0e-0", "123456789012345678901234567890"}) {
    io::JsonLexer lexer(good, "f");
    EXPECT_EQ(lexer.number(), good);
    EXPECT_TRUE(lexer.at_end());
  }
  for (const char* bad : {"", "-", "+1", ".5", "1.", "1.e5", "1e", "1e+", "01", "-01", "x", "Infinity", "0x1"}) {
    io::JsonLexer lexer(bad, "f");
    EXPECT_TRUE(number_fault(bad) != "" || (lexer.number(), !lexer.at_end())) << bad;
  }
}

TEST(JsonLexer, TellsLineAndColumn) {
  io::JsonLexer lexer("{\n  \"a\": }", "file.json");
  lexer.expect('{');
  EXPECT_EQ(lexer.string(), "a");
  lexer.expect(':');
  try {
    lexer.string();
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[file.json] line 2, column 8: expected a string");
  }
}

TEST(JsonLexer, TakesWholeWordsOnly) {
  io::JsonLexer lexer(" true nullx -Infinity", "f");
  EXPECT_FALSE(lexer.take_word("tru"));
  EXPECT_TRUE(lexer.take_word("true"));
  EXPECT_FALSE(lexer.take_word("null"));
  EXPECT_TRUE(lexer.take_word("nullx"));
  EXPECT_TRUE(lexer.take_word("-Infinity"));
  EXPECT_TRUE(lexer.at_end());
}

TEST(JsonLexer, DecodesEveryEscape) {
  io::JsonLexer lexer(R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\uDE00\u0000.")", "f");
  EXPECT_EQ(lexer.string(), std::string("\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\0.", 20));
}

TEST(JsonLexer, QuotedTextReadsBackAsItself) {
  std::string text;
  for (int c = 0; c < 128; ++c) text += static_cast<char>(c);
  text += "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  std::string quoted;
  io::append_quoted(quoted, text);
  EXPECT_EQ(io::JsonLexer(quoted, "f").string(), text);
}

TEST(JsonLexer, CutsLongTextsOfMessagesBetweenCharacters) {
  std::string text(98, 'x');
  for (int i = 0; i < 40; ++i) text += "\xE2\x82\xAC";
  const std::string shown = io::quoted_for_message(text);
  EXPECT_TRUE(io::is_utf8(shown));
  EXPECT_LT(shown.size(), 130u);
  EXPECT_EQ(io::quoted_for_message("\x1B[31m"), "\"\\u001b[31m\"");
}

TEST(IsUtf8, FollowsTheUnicodeTable) {
  for (const char* good : {"", "a", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(io::is_utf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xBF", "\xC0\xAF", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x9F\xBF", "\xE1\x80", "\xED\xA0\x80",
        "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF"}) {
    EXPECT_FALSE(io::is_utf8(bad));
  }
}

}  // namespace
}  // namespace stepwell
