// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/segments.h"

#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"

namespace stepwell {
namespace {

using Offsets = std::vector<std::int64_t>;

TEST(Segments, UniformIsABatchOfEqualLengths) {
  const Segments s = Segments::uniform(3, 5);
  EXPECT_EQ(s.count(), 3);
  EXPECT_EQ(s.tokens(), 15);
  EXPECT_EQ(s.begin(2), 10);
  EXPECT_EQ(s.end(2), 15);
  EXPECT_EQ(s.length(1), 5);
  EXPECT_EQ(Segments::uniform(0, 5).tokens(), 0);
  EXPECT_EQ(Segments::uniform(4, 0).tokens(), 0);
  EXPECT_EQ(Segments::uniform(4, 0).length(3), 0);
}

TEST(Segments, OffsetsOfEqualLengthsMeanTheSame) {
  const Offsets offsets = {0, 5, 10, 15};
  const Segments packed = Segments::from_offsets(offsets, 15), batch = Segments::uniform(3, 5);
  ASSERT_EQ(packed.count(), batch.count());
  for (int s = 0; s < 3; ++s) {
    EXPECT_EQ(packed.begin(s), batch.begin(s));
    EXPECT_EQ(packed.end(s), batch.end(s));
  }
}

TEST(FieldReport, P25_EmptySequencesAreFine) {
  const Offsets offsets = {0, 0, 3, 3, 6, 6};
  const Segments s = Segments::from_offsets(offsets, 6);
  ASSERT_EQ(s.count(), 5);
  const Offsets lengths = {0, 3, 0, 3, 0};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(s.length(i), lengths[static_cast<std::size_t>(i)]);
  EXPECT_EQ(s.tokens(), 6);
  const Offsets none = {0};
  EXPECT_EQ(Segments::from_offsets(none, 0).count(), 0);
  EXPECT_EQ(Segments::from_offsets(none, 0).tokens(), 0);
}

void expect_error(const Offsets& offsets, std::int64_t tokens, const std::string& words) {
  try {
    Segments::from_offsets(offsets, tokens);
    FAIL() << "no error for \"" << words << '"';
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Argument);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(FieldReport, P25_ContradictingOffsetsAreErrorsThatSayWhatIsWrong) {
  expect_error({0, 5}, 6, "ends at 5, expected the number of tokens, 6");
  expect_error({1, 6}, 6, "starts at 1, expected 0");
  expect_error({0, 4, 2, 6}, 6, "entry 2 is 2 after 4");
  expect_error({0, -1, 6}, 6, "entry 1 is -1 after 0");
  expect_error({-1, 6}, 6, "starts at -1");
  expect_error({0, 7}, 6, "ends at 7");
  expect_error({}, 0, "empty");
  expect_error({0}, 6, "ends at 0");
}

}  // namespace
}  // namespace stepwell
