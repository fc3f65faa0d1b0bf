// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/series.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"

#include "tests/train/scratch_folder.h"

namespace stepwell::train {
namespace {

std::vector<double> read(const char* content, const char* column) {
  const ScratchFolder scratch;
  scratch.write("data.csv", content);
  return read_csv_column(scratch.path("data.csv"), column);
}

std::string message_of(const char* content, const char* column) {
  try {
    read(content, column);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::File);
    return error.what();
  }
  return "no error";
}

TEST(Csv, ReadsAColumn) {
  EXPECT_EQ(read("t,x\n1,2.5\n2,-3e-2\n", "x"), (std::vector<double>{2.5, -0.03}));
  EXPECT_EQ(read("t,x\n1,2.5\n2,-3e-2\n", "t"), (std::vector<double>{1, 2}));
  EXPECT_EQ(read("x\n7", "x"), std::vector<double>{7});
  EXPECT_EQ(read("x\r\n7\r\n\r\n8\r\n", "x"), (std::vector<double>{7, 8}));
  EXPECT_EQ(read("\"a,\"\"b\", x \n\"1,2\", 5 \n", "x"), std::vector<double>{5});
}

TEST(Csv, TakesColumnsByNumber) {
  EXPECT_EQ(read("1,2.5\n2,-3\n", "2"), (std::vector<double>{2.5, -3}));
  EXPECT_EQ(read("7\n8\n", "1"), (std::vector<double>{7, 8}));
  EXPECT_EQ(read("t,x\n1,2.5\n", "2"), std::vector<double>{2.5}) << "names may be there all the same";
  EXPECT_EQ(read("2,x\n1,2.5\n", "x"), std::vector<double>{2.5}) << "a name that is a number";
  EXPECT_EQ(read("2021,abc,1\n2022,,3\n", "3"), (std::vector<double>{1, 3})) << "other columns need no numbers";
  EXPECT_EQ(read("\xEF\xBB\xBFx,t\n5,1\n", "x"), std::vector<double>{5}) << "a byte order mark";
}

TEST(Csv, ANameThatStandsTwiceIsRefused) {
  EXPECT_NE(message_of("x,t,x\n1,2,3\n", "x").find("line 1: more than one column x, name it by its number"),
            std::string::npos);
  EXPECT_EQ(read("x,t,x\n1,2,3\n", "3"), std::vector<double>{3});
}

TEST(Csv, NamesLineAndFault) {
  EXPECT_NE(message_of("time,value\n1,2\n", "vlaue").find("line 1: no column vlaue, did you mean value?"),
            std::string::npos);
  EXPECT_NE(message_of("t,x\n1,2\n1,abc\n", "x").find("line 3: \"abc\" in column x, expected a finite number"),
            std::string::npos);
  EXPECT_NE(message_of("t,x\n1,2\n\n1\n", "x").find("line 4: 1 fields, expected at least 2"), std::string::npos);
  for (const char* bad : {"x\nnan\n", "x\ninf\n", "x\n1e999\n", "x\n1 2\n", "x\n0x10\n", "x\n+1\n"}) {
    EXPECT_NE(message_of(bad, "x").find("expected a finite number"), std::string::npos) << bad;
  }
  EXPECT_NE(message_of("t,x\n1,2\n1,\n", "x").find("line 3: no value in column x"), std::string::npos);
  EXPECT_NE(message_of("x\n,\n", "x").find("line 2: no value in column x"), std::string::npos);
  EXPECT_NE(message_of("\n1,2\nx,3\n", "1").find("line 3: \"x\" in column 1"), std::string::npos);
  EXPECT_NE(message_of("1,\n", "2").find("line 1: no value in column 2"), std::string::npos);
  EXPECT_NE(message_of("1,2\n", "x").find("no column x in 2 columns without names"), std::string::npos);
  for (const char* beyond : {"0", "3", "-1", "1.5", "99999999999999999999"}) {
    EXPECT_NE(message_of("1,2\n", beyond).find("no column"), std::string::npos) << beyond;
    EXPECT_NE(message_of("a,b\n1,2\n", beyond).find("no column"), std::string::npos) << beyond;
  }
  EXPECT_NE(message_of("", "x").find("has no rows"), std::string::npos);
  EXPECT_NE(message_of("x\n", "x").find("has no rows"), std::string::npos);
}

}  // namespace
}  // namespace stepwell::train
