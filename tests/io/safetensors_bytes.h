// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "stepwell/core/error.h"
#include "stepwell/io/safetensors.h"

namespace stepwell {

// A safetensors file made by hand: length, header, data.
inline std::string safetensors_bytes(std::string_view header, std::string_view data, std::uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes.append(header).append(data);
}
inline std::string safetensors_bytes(std::string_view header, std::string_view data = "") {
  return safetensors_bytes(header, data, header.size());
}

inline io::SafetensorsFile parse_safetensors(const std::string& bytes) {
  return io::SafetensorsFile::parse(std::as_bytes(std::span(bytes)), "made.safetensors", nullptr);
}

// What parsing says about a broken file; "" if it says nothing.
inline std::string parse_fault(const std::string& bytes) {
  try {
    parse_safetensors(bytes);
  } catch (const Error& e) {
    return e.code() == ErrorCode::File ? e.what() : std::string("wrong code: ") + e.what();
  }
  return "";
}

}  // namespace stepwell
