// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/io/json.h"
#include "stepwell/io/safetensors.h"

#include "tests/io/temporary_folder.h"

namespace stepwell {
namespace {

// Files written by another program, the reference library in Python.
TEST(GoldenFiles, AreReadAndRewrittenUnchanged) {
  TemporaryFolder folder;
  int files = 0;
  for (const auto& item : std::filesystem::directory_iterator(STEPWELL_TEST_DATA "/golden/mamba")) {
    if (item.path().extension() != ".safetensors") continue;
    ++files;
    const auto file = io::SafetensorsFile::open(item.path().string());
    const io::Metadata metadata = file.metadata();
    EXPECT_NO_THROW(io::check_format(metadata, "stepwell-case-1", file.path()));
    EXPECT_EQ(metadata.at("name"), item.path().stem().string());
    EXPECT_TRUE(io::parse_json(metadata.at("config"), file.path()).is_object());
    EXPECT_GT(io::parse_json(metadata.at("tol"), file.path()).find("f32")->as_double("f32"), 0);
    const auto tensors = file.tensors();
    EXPECT_GT(tensors.size(), 5u);
    for (const auto& [name, tensor] : tensors) {
      ASSERT_TRUE(tensor.dtype() == DType::F64 || tensor.dtype() == DType::I64) << name;
      for (std::int64_t i = 0; i < tensor.numel(); ++i) ASSERT_TRUE(std::isfinite(tensor.at(i))) << name;
    }
    const std::string copy = folder.file("copy");
    io::write_safetensors(copy, tensors, metadata);
    const auto again = io::SafetensorsFile::open(copy);
    EXPECT_EQ(again.metadata(), metadata);
    ASSERT_EQ(again.names(), file.names());
    for (const auto& [name, tensor] : tensors) EXPECT_TRUE(again.tensor(name).same_bits(tensor)) << name;
  }
  EXPECT_EQ(files, 67);
}

TEST(GoldenFiles, HoldTheValuesTheyWereMadeWith) {
  const auto file = io::SafetensorsFile::open(STEPWELL_TEST_DATA "/golden/mamba/scan_min.safetensors");
  EXPECT_EQ(file.tensor("in.u").shape(), Shape({1, 3, 2}));
  EXPECT_EQ(file.tensor("in.u").at(0), 0.6613521715704522);
  EXPECT_EQ(file.tensor("out.y").at(5), -1.1485925729349615);
}

}  // namespace
}  // namespace stepwell
