// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "stepwell/core/error.h"
#include "stepwell/io/safetensors.h"

namespace stepwell {
namespace {

// Whatever the bytes: an Error of code File, or a file whose every tensor can be read.
void read_all(const std::vector<std::byte>& bytes) {
  try {
    const auto file = io::SafetensorsFile::parse(bytes, "fuzz", nullptr);
    std::string previous;
    std::size_t i = 0, data = 0;
    for (const auto& name : file.names()) {
      const auto found = file.find(name);
      if (!found || (i++ > 0 && name <= previous)) std::abort();
      previous = name;
      data += static_cast<std::size_t>(found->end - found->begin);
    }
    if (data > bytes.size() || (!bytes.empty() && i != file.size())) std::abort();
    file.metadata();
    for (const auto& [name, tensor] : file.tensors()) tensor.same_bits(tensor.clone());
  } catch (const Error& e) {
    if (e.code() != ErrorCode::File) std::abort();
  }
}

}  // namespace
}  // namespace stepwell

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(begin, begin + size);
  stepwell::read_all(bytes);
  if (size < 8) return 0;
  // The same with a header length that fits, so that mutations reach what lies behind the length.
  std::uint64_t length = 0;
  std::memcpy(&length, data, sizeof(length));
  length %= size - 7;
  std::memcpy(bytes.data(), &length, sizeof(length));
  stepwell::read_all(bytes);
  return 0;
}
