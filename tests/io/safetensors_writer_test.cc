// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/io/safetensors.h"

#include "tests/io/random_tensor.h"
#include "tests/io/temporary_folder.h"

namespace stepwell {
namespace {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

constexpr DType kAllDTypes[] = {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I8,
                                DType::U8,  DType::I32, DType::I64,  DType::Bool};

std::string content(const std::string& path) { return io::read_file(path, 1 << 20); }

TEST(SafetensorsWriter, KeepsEveryDTypeAndShapeBitForBit) {
  TemporaryFolder folder;
  NamedTensors tensors;
  const Shape shapes[] = {Shape{}, Shape{0}, Shape{1}, Shape{7}, Shape{3, 0, 5}, Shape{2, 3}, Shape{2, 1, 3, 1, 2, 5}};
  for (const DType dtype : kAllDTypes) {
    for (const Shape& shape : shapes) {
      const std::string name = std::string(dtype_name(dtype)) + shape.to_string();
      tensors.emplace_back(name, random_tensor(shape, dtype, tensors.size()));
    }
  }
  const io::Metadata metadata{{"format", "stepwell-test-1"}, {"", "empty key"}, {"quote\"\\\n\x01\x7F", "\xC3\xA9\t"}};
  const std::string path = folder.file("all.safetensors");
  io::write_safetensors(path, tensors, metadata);

  const auto file = io::SafetensorsFile::open(path);
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(file.tensor(name).same_bits(tensor)) << name;
    const auto info = file.find(name);
    ASSERT_TRUE(info.has_value());
    EXPECT_EQ(info->begin % static_cast<std::uint64_t>(dtype_size(tensor.dtype())), 0u) << name;
  }

  const std::string again = folder.file("again.safetensors");
  io::write_safetensors(again, file.tensors(), file.metadata());
  EXPECT_EQ(content(path), content(again));
}

TEST(SafetensorsWriter, BytesDependOnNothingButTheContent) {
  TemporaryFolder folder;
  const NamedTensors forth{{"b", Tensor::full({3}, 1)}, {"a", Tensor::full({2}, 2, DType::U8)}};
  const NamedTensors back{forth[1], forth[0]};
  io::write_safetensors(folder.file("1"), forth);
  io::write_safetensors(folder.file("2"), back);
  EXPECT_EQ(content(folder.file("1")), content(folder.file("2")));
  std::string header = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[12,14]},)"
                       R"("b":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::string bytes = content(folder.file("1"));
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ(bytes.size(), 8 + header.size() + 14);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length, header.size());
}

TEST(SafetensorsWriter, WritesNothingAtAllForNoTensors) {
  TemporaryFolder folder;
  io::write_safetensors(folder.file("none"), NamedTensors{});
  EXPECT_EQ(content(folder.file("none")), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
}

TEST(SafetensorsWriter, PacksStridedTensors) {
  TemporaryFolder folder;
  const Tensor whole = random_tensor({4, 6}, DType::F32, 3), part = whole.slice(-1, 1, 3);
  io::write_safetensors(folder.file("s"), NamedTensors{{"part", part}});
  EXPECT_TRUE(io::SafetensorsFile::open(folder.file("s")).tensor("part").same_bits(part.clone()));
}

TEST(SafetensorsWriter, RefusesWhatTheFormatCannotHold) {
  TemporaryFolder folder;
  const Tensor t = Tensor::zeros({1});
  auto refused = [&](const NamedTensors& tensors, const io::Metadata& metadata = {}) {
    try {
      io::write_safetensors(folder.file("bad"), tensors, metadata);
    } catch (const Error& e) {
      return e.code() == ErrorCode::Argument;
    }
    return false;
  };
  EXPECT_TRUE(refused({{"a", t}, {"b", t}, {"a", t}}));
  EXPECT_TRUE(refused({{"__metadata__", t}}));
  EXPECT_TRUE(refused({{"\xFF", t}}));
  EXPECT_TRUE(refused({{"a", Tensor()}}));
  EXPECT_TRUE(refused({{"a", t}}, {{"\xED\xA0\x80", ""}}));
  EXPECT_TRUE(refused({{"a", t}}, {{"k", "\xC0\x80"}}));
  EXPECT_TRUE(refused({{"a", t}}, {{"k", std::string(100'000'000, 'x')}}));
  EXPECT_EQ(folder.count(), 0);
}

TEST(SafetensorsWriter, ReplacesAFileThatItsTensorsStillMap) {
  TemporaryFolder folder;
  const std::string path = folder.file("self");
  const Tensor w = random_tensor({1000}, DType::F32, 5);
  io::write_safetensors(path, NamedTensors{{"w", w}});
  io::write_safetensors(path, io::SafetensorsFile::open(path).tensors());
  EXPECT_TRUE(io::SafetensorsFile::open(path).tensor("w").same_bits(w));
}

TEST(CheckFormat, NamesMissingForeignAndNewerFormats) {
  auto fault = [](const io::Metadata& metadata) -> std::string {
    try {
      io::check_format(metadata, "stepwell-model-1", "f");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(fault({{"format", "stepwell-model-1"}}), "");
  EXPECT_EQ(fault({}), "[f] no \"format\" in the metadata, expected \"stepwell-model-1\"");
  EXPECT_EQ(fault({{"format", "pt"}}), "[f] format \"pt\", expected \"stepwell-model-1\": not a file of this kind");
  EXPECT_EQ(fault({{"format", "stepwell-model-2"}}),
            "[f] format \"stepwell-model-2\", expected \"stepwell-model-1\": written by another version of Stepwell");
}

}  // namespace
}  // namespace stepwell
