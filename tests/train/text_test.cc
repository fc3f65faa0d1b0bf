// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/text.h"

#include <cmath>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"
#include "stepwell/io/file.h"

#include "tests/train/scratch_folder.h"

namespace stepwell::train {
namespace {

namespace fs = std::filesystem;

std::string message_of(const std::vector<std::string>& paths, const char* hold_out = "", double fraction = 0.1) {
  try {
    ByteText::load(paths, hold_out, fraction);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::File) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(Matches, KnowsStarAndQuestionMark) {
  EXPECT_TRUE(matches("MPL*", "MPL-1.1"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*.txt", ".txt"));
  EXPECT_TRUE(matches("a*b*c", "a__b_b__c"));
  EXPECT_TRUE(matches("?b", "ab"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("MPL*", "LMPL"));
  EXPECT_FALSE(matches("a*b*c", "acb"));
  EXPECT_FALSE(matches("?", ""));
  EXPECT_FALSE(matches("?", "ab"));
  EXPECT_FALSE(matches("a*", "ba"));
}

TEST(ListFiles, SortsAndSkipsLinksHiddenAndEmptyFiles) {
  const ScratchFolder scratch;
  scratch.write("b/two", "2");
  scratch.write("b/one", "1");
  scratch.write("a", "0");
  scratch.write("b/.hidden", "x");
  scratch.write("b/.git/config", "x");
  scratch.write("b/empty", "");
  fs::create_symlink(scratch.path("a"), scratch.path("b/link"));
  fs::create_directory_symlink(scratch.path("b"), scratch.path("b/loop"));
  const std::vector<std::string> paths{scratch.path("b"), scratch.path("a"), scratch.path("b/../b/one")};
  EXPECT_EQ(list_files(paths),
            (std::vector<std::string>{scratch.path("a"), scratch.path("b/one"), scratch.path("b/two")}));
  // A link that is named itself is meant.
  EXPECT_EQ(list_files(std::vector<std::string>{scratch.path("b/link")}).size(), 1u);
}

TEST(ListFiles, NamesWhatIsWrong) {
  const ScratchFolder scratch;
  scratch.write("empty", "");
  fs::create_directory(scratch.path("bare"));
  EXPECT_NE(message_of({scratch.path("missing")}).find("no file or folder"), std::string::npos);
  EXPECT_NE(message_of({scratch.path("empty")}).find("is empty"), std::string::npos);
  EXPECT_NE(message_of({scratch.path("bare")}).find("no files with content"), std::string::npos);
  EXPECT_NE(message_of({"/dev/null"}).find("neither a file nor a folder"), std::string::npos);
}

TEST(ByteText, HoldsOutByNameOrByPart) {
  const ScratchFolder scratch;
  scratch.write("GPL-1", "alpha");
  scratch.write("MPL-1", "beta");
  scratch.write("MPL-2", "gamma!");
  const std::vector<std::string> folder{scratch.path("")};
  const ByteText by_name = ByteText::load(folder, "MPL*", 0.5);
  EXPECT_EQ(by_name.train, "alpha");
  EXPECT_EQ(by_name.held_out, (std::vector<std::string>{"beta", "gamma!"}));
  EXPECT_EQ(by_name.held_out_bytes(), 10);
  const ByteText by_part = ByteText::load(folder, "", 0.2);
  EXPECT_EQ(by_part.train, "alphabetagam");
  EXPECT_EQ(by_part.held_out, std::vector<std::string>{"ma!"});
  const ByteText nothing = ByteText::load(folder, "", 0);
  EXPECT_EQ(nothing.train, "alphabetagamma!");
  EXPECT_TRUE(nothing.held_out.empty());
  EXPECT_NE(message_of(folder, "X*").find("none of 3 files matches X*"), std::string::npos);
  EXPECT_NE(message_of(folder, "*").find("none is left to train on"), std::string::npos);
}

TEST(Unigram, CountsBytesWithOneAdded) {
  const Unigram unigram("aab");
  EXPECT_NEAR(unigram.bits('a'), -std::log2(3.0 / 259), 1e-12);
  EXPECT_NEAR(unigram.bits('b'), -std::log2(2.0 / 259), 1e-12);
  EXPECT_NEAR(unigram.bits(255), -std::log2(1.0 / 259), 1e-12);
  EXPECT_NEAR(Unigram("").bits(0), 8, 1e-12);
}

}  // namespace
}  // namespace stepwell::train
