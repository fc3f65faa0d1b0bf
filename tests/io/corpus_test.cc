// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"
#include "stepwell/io/json.h"

#include "tests/io/safetensors_bytes.h"

namespace stepwell {
namespace {

// Calls f with the content of every file of tests/fuzz/corpus/`kind` and says whether f throws no Error exactly for the
// files whose names say that they are valid.
template <class F>
void expect_verdicts(const std::string& kind, F&& f) {
  int files = 0;
  for (const auto& item : std::filesystem::directory_iterator(STEPWELL_TEST_DATA "/fuzz/corpus/" + kind)) {
    ++files;
    const std::string name = item.path().filename().string();
    const std::string content = io::read_file(item.path().string(), 1 << 20);
    bool valid = true;
    try {
      f(content);
    } catch (const Error& e) {
      valid = false;
      EXPECT_EQ(e.code(), ErrorCode::File) << name;
    }
    EXPECT_EQ(valid, name.starts_with("valid_")) << name;
  }
  EXPECT_GT(files, 10);
}

TEST(FuzzCorpus, SafetensorsAreAcceptedOrRefusedAsNamed) {
  expect_verdicts("safetensors", [](const std::string& bytes) { parse_safetensors(bytes).tensors(); });
}

TEST(FuzzCorpus, JsonIsAcceptedOrRefusedAsNamed) {
  expect_verdicts("json", [](const std::string& text) { io::parse_json(text, "corpus"); });
}

}  // namespace
}  // namespace stepwell
