// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/io/safetensors.h"

#include "tests/io/random_tensor.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/temporary_folder.h"

namespace stepwell {
namespace {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

bool holds(const Tensor& t, const std::string& bytes) {
  return t.raw() >= bytes.data() && t.raw() < bytes.data() + bytes.size();
}

TEST(SafetensorsReader, SharesTheMappingAndOutlivesTheFileObject) {
  TemporaryFolder folder;
  const std::string path = folder.file("a.safetensors");
  const Tensor w = random_tensor({3, 5}, DType::F32, 1);
  io::write_safetensors(path, NamedTensors{{"w", w}});
  Tensor a, b;
  {
    const auto file = io::SafetensorsFile::open(path);
    a = file.tensor("w");
    b = file.tensor("w");
    EXPECT_EQ(file.path(), path);
  }
  EXPECT_EQ(a.raw(), b.raw());
  io::write_safetensors(path, NamedTensors{{"other", w}});  // replaces the file; the old mapping stays
  EXPECT_TRUE(a.same_bits(w));
}

TEST(SafetensorsReader, CopiesUnalignedData) {
  const std::string header = R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("f":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})";
  const float values[] = {1.5f, -2.25f};
  std::string bytes = safetensors_bytes(header, "\x07" + std::string(reinterpret_cast<const char*>(values), 8));
  const auto file = parse_safetensors(bytes);
  EXPECT_EQ(file.tensor("b").at(0), 7);
  EXPECT_TRUE(holds(file.tensor("b"), bytes));
  const Tensor f = file.tensor("f");
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data() + 8 + header.size() + 1) % 4 == 0;
  EXPECT_EQ(holds(f, bytes), aligned);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(f.raw()) % 4, 0u);
  EXPECT_EQ(f.at(0), 1.5);
  EXPECT_EQ(f.at(1), -2.25);
}

TEST(SafetensorsReader, CopiesAtEveryOffset) {
  for (std::size_t gap = 0; gap < 8; ++gap) {
    const std::string header = R"({"a":{"dtype":"U8","shape":[)" + std::to_string(gap) + R"(],"data_offsets":[0,)" +
                               std::to_string(gap) + R"(]},"d":{"dtype":"F64","shape":[1],"data_offsets":[)" +
                               std::to_string(gap) + "," + std::to_string(gap + 8) + "]}}";
    const double value = 0.1;
    const std::string bytes =
        safetensors_bytes(header, std::string(gap, 'g') + std::string(reinterpret_cast<const char*>(&value), 8));
    const Tensor d = parse_safetensors(bytes).tensor("d");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(d.raw()) % 8, 0u);
    EXPECT_EQ(d.at(0), 0.1);
  }
}

TEST(SafetensorsReader, ReadsScalarsEmptyTensorsAndEmptyFiles) {
  const std::string header = R"({"e":{"dtype":"F64","shape":[3,0,2],"data_offsets":[4,4]},)"
                             R"("s":{"dtype":"I32","shape":[],"data_offsets":[0,4]},)"
                             R"("z":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}   )";
  const std::string bytes = safetensors_bytes(header, std::string("\x2A\0\0\0", 4));
  const auto file = parse_safetensors(bytes);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"e", "s", "z"}));
  EXPECT_EQ(file.tensor("s").rank(), 0);
  EXPECT_EQ(file.tensor("s").at(0), 42);
  EXPECT_EQ(file.tensor("e").shape(), Shape({3, 0, 2}));
  EXPECT_TRUE(file.tensor("z").defined());
  EXPECT_EQ(file.tensor("z").numel(), 0);
  EXPECT_EQ(parse_safetensors(safetensors_bytes("{}")).size(), 0u);
}

TEST(SafetensorsReader, DescribesTensorsAndListsThemByName) {
  const std::string header =
      "{ \"z\" : {\"data_offsets\" : [0, 4],\n \"shape\": [2 ,1], \"dtype\":\"BF16\"}, \"__metadata__\":{\"k\":\"v\"},"
      "\t\"\\u0061\\n\\ud83d\\ude00\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[4,5]}}";
  const std::string bytes = safetensors_bytes(header, std::string("\0\0\0\0\1", 5));
  const auto file = parse_safetensors(bytes);
  ASSERT_EQ(file.size(), 2u);
  const io::TensorInfo first = file.info(0), second = file.info(1);
  EXPECT_EQ(first.name, "a\n\xF0\x9F\x98\x80");
  EXPECT_EQ(first.dtype, DType::Bool);
  EXPECT_EQ(second.name, "z");
  EXPECT_EQ(second.dtype, DType::BF16);
  EXPECT_EQ(second.shape, Shape({2, 1}));
  EXPECT_EQ(second.begin, 0u);
  EXPECT_EQ(second.end, 4u);
  EXPECT_TRUE(file.contains("a\n\xF0\x9F\x98\x80"));
  EXPECT_FALSE(file.contains("__metadata__"));
  EXPECT_FALSE(file.find("y").has_value());
  EXPECT_EQ(file.metadata(), (io::Metadata{{"k", "v"}}));
  const auto all = file.tensors();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].first, first.name);
  EXPECT_EQ(all[0].second.at(0), 1);
  EXPECT_THROW(file.info(2), Error);
}

TEST(SafetensorsReader, NamesTheNearestTensorForAnUnknownOne) {
  const std::string bytes = safetensors_bytes(R"({"weight":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})");
  try {
    parse_safetensors(bytes).tensor("weigth");
    FAIL() << "found";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::File);
    EXPECT_STREQ(e.what(), "[made.safetensors] no tensor \"weigth\"; the nearest name is \"weight\"");
  }
}

// Changing a mapped file in place is forbidden, but must not make anything read outside the file.
TEST(SafetensorsReader, NoticesAHeaderThatChangesWhileOpen) {
  std::string bytes = safetensors_bytes(R"({"w":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", "12345678");
  const auto file = parse_safetensors(bytes);
  bytes[bytes.find("U8")] = 'I';
  EXPECT_EQ(file.tensor("w").dtype(), DType::I8);
  bytes[bytes.find("[0,8]") + 3] = '9';
  EXPECT_EQ(file.find("w")->end, 8u);
  bytes[bytes.find("[8]") + 1] = '9';
  EXPECT_THROW(file.find("w"), Error);
}

TEST(SafetensorsReader, RefusesBoolBytesOtherThanZeroAndOne) {
  const std::string header = R"({"m":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})";
  EXPECT_EQ(parse_safetensors(safetensors_bytes(header, std::string("\0\1\1", 3))).tensor("m").at(1), 1);
  const std::string bad = safetensors_bytes(header, std::string("\0\1\2", 3));
  EXPECT_THROW(parse_safetensors(bad).tensor("m"), Error);
}

TEST(SafetensorsReader, GivesTheSameTensorsToManyThreads) {
  TemporaryFolder folder;
  const std::string path = folder.file("many.safetensors");
  NamedTensors tensors;
  for (unsigned i = 0; i < 20; ++i) {
    tensors.emplace_back("t" + std::to_string(i), random_tensor({1 + i, 3}, i % 2 ? DType::F32 : DType::F64, i));
  }
  io::write_safetensors(path, tensors);
  const auto file = io::SafetensorsFile::open(path);
  std::vector<int> equal(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (const auto& [name, tensor] : tensors)
        equal[static_cast<std::size_t>(t)] += file.tensor(name).same_bits(tensor);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(equal, (std::vector<int>(4, 20)));
}

TEST(SafetensorsReader, SaysWhatIsWrongWithThePath) {
  TemporaryFolder folder;
  auto fault = [](const std::string& path) -> std::string {
    try {
      io::SafetensorsFile::open(path);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(fault(folder.file("none")).find("No such file"), std::string::npos);
  EXPECT_NE(fault(folder.path()).find("is a folder"), std::string::npos);
  EXPECT_NE(fault("/dev/null").find("not a regular file"), std::string::npos);
  io::write_file(folder.file("empty"), "");
  EXPECT_NE(fault(folder.file("empty")).find("0 bytes, too few"), std::string::npos);
}

}  // namespace
}  // namespace stepwell
