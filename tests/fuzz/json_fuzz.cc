// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "stepwell/core/error.h"
#include "stepwell/io/json.h"

namespace stepwell {
namespace {

// Whatever the text: an Error of code File, or a value that is written as JSON, read back, and written the same.
void read_and_write(const std::string& text, io::JsonDialect dialect) {
  Config value;
  try {
    value = io::parse_json(text, "fuzz", dialect);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::File) std::abort();
    return;
  }
  for (const int indent : {0, 2}) {
    const std::string written = io::to_json(value, indent);
    if (io::to_json(io::parse_json(written, "written"), indent) != written) std::abort();
  }
}

}  // namespace
}  // namespace stepwell

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  stepwell::read_and_write(text, stepwell::io::JsonDialect::Strict);
  stepwell::read_and_write(text, stepwell::io::JsonDialect::Config);
  return 0;
}
