// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <stdlib.h>

#include "stepwell/core/error.h"

#include "tests/io/random_tensor.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/temporary_folder.h"
#include "verify/counted_heap.h"

namespace stepwell {
namespace {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// RapidCheck reads its parameters from here when the first property runs.
[[maybe_unused]] const int kFixedSeed = ::setenv("RC_PARAMS", "seed=20260101 max_success=2000", 0);

constexpr DType kAllDTypes[] = {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I8,
                                DType::U8,  DType::I32, DType::I64,  DType::Bool};

NamedTensors draw_tensors() {
  NamedTensors tensors;
  std::vector<std::string> names = *rc::gen::container<std::vector<std::string>>(rc::gen::string<std::string>());
  for (std::string& name : names) {
    for (char& c : name) c = static_cast<char>(c & 0x7F);  // ASCII, control characters included
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    const auto extents = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 5));
    const std::size_t rank = std::min<std::size_t>(extents.size(), Shape::kMaxRank);
    const DType dtype = kAllDTypes[*rc::gen::inRange<std::size_t>(0, std::size(kAllDTypes))];
    tensors.emplace_back(name, random_tensor(Shape(std::span(extents.data(), rank)), dtype, tensors.size()));
  }
  return tensors;
}

// Either an Error of code File, or a file all of whose tensors can be read; in no more memory than the file warrants.
bool is_refused_or_whole(const std::string& bytes) {
  verify::HeapMeter meter;
  try {
    const auto file = parse_safetensors(bytes);
    if (meter.peak() > static_cast<std::int64_t>(bytes.size()) + (1 << 20)) return false;
    std::uint64_t data = 0;
    for (std::size_t i = 0; i < file.size(); ++i) data += file.info(i).end - file.info(i).begin;
    for (const auto& [name, tensor] : file.tensors()) {
      if (!file.contains(name) || !tensor.same_bits(file.tensor(name))) return false;
    }
    file.metadata();
    return data < bytes.size();
  } catch (const Error& e) {
    return e.code() == ErrorCode::File && meter.peak() <= static_cast<std::int64_t>(bytes.size()) + (1 << 20);
  }
}

// Not under rc::check, whose 2000 runs are too many for files: 60 draws of growing size do.
TEST(SafetensorsProperty, SavingLoadingAndSavingAgainGivesTheSameBytes) {
  TemporaryFolder folder;
  const auto generator = rc::gen::exec(draw_tensors);
  for (int size = 0; size < 60; ++size) {
    const NamedTensors tensors = generator(rc::Random(20260101), size).value();
    io::write_safetensors(folder.file("a"), tensors, {{"size", std::to_string(size)}});
    const auto file = io::SafetensorsFile::open(folder.file("a"));
    const auto loaded = file.tensors();
    ASSERT_EQ(loaded.size(), tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      ASSERT_EQ(loaded[i].first, tensors[i].first);
      ASSERT_TRUE(loaded[i].second.same_bits(tensors[i].second)) << tensors[i].first;
    }
    io::write_safetensors(folder.file("b"), loaded, file.metadata());
    ASSERT_EQ(io::read_file(folder.file("a"), 1 << 24), io::read_file(folder.file("b"), 1 << 24));
  }
}

TEST(SafetensorsProperty, MutatedFilesAreRefusedOrWhole) {
  TemporaryFolder folder;
  NamedTensors tensors;
  for (const DType dtype : kAllDTypes) {
    tensors.emplace_back(std::string(dtype_name(dtype)), random_tensor({3, 2}, dtype, tensors.size()));
  }
  io::write_safetensors(folder.file("valid"), tensors, {{"format", "stepwell-test-1"}});
  const std::string valid = io::read_file(folder.file("valid"), 1 << 20);
  const std::size_t header = valid.find('}', valid.rfind("data_offsets"));
  EXPECT_TRUE(rc::check("mutations", [&] {
    std::string bytes = valid;
    const int mutations = *rc::gen::inRange(1, 6);
    for (int i = 0; i < mutations && !bytes.empty(); ++i) {
      const auto at = *rc::gen::inRange<std::size_t>(0, std::min(bytes.size(), header + 8));
      const auto length = *rc::gen::inRange<std::size_t>(1, 9);
      switch (*rc::gen::inRange(0, 6)) {
        case 0: bytes[at] = static_cast<char>(*rc::gen::arbitrary<std::uint8_t>()); break;
        case 1: bytes.erase(at, length); break;
        case 2: bytes.insert(at, bytes.substr(*rc::gen::inRange<std::size_t>(0, bytes.size()), length)); break;
        case 3: bytes.resize(at); break;
        case 4: bytes[at] = *rc::gen::elementOf(std::string("0123456789\"{}[]:,\\-. eu")); break;
        default: bytes.append(length, '\0');
      }
    }
    // Half of the time with a header length that fits the text again, as a careful forger would.
    const std::size_t end = bytes.rfind('}');
    if (*rc::gen::arbitrary<bool>() && end != std::string::npos && end >= 8) {
      const std::uint64_t length = end + 1 - 8;
      std::memcpy(bytes.data(), &length, 8);
    }
    RC_ASSERT(is_refused_or_whole(bytes));
  }));
}

}  // namespace
}  // namespace stepwell
