// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "io/markup.h"

#include <cstddef>
#include <cstdint>

namespace stepwell::io {

namespace {

// Bytes of the code point that `text` starts with if XML allows it, else 0.
std::size_t allowed_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 ? lead != 0x7F : lead == '\t' || lead == '\n' || lead == '\r';
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || length > text.size()) return 0;
  std::uint32_t code = lead & (0xFF >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const std::uint32_t smallest = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  const bool control = code < 0xA0;
  return code >= smallest && code <= 0x10FFFF && !surrogate && !control && code != 0xFFFE && code != 0xFFFF ? length
                                                                                                            : 0;
}

}  // namespace

// After Okabe and Ito's palette, which readers with colour-blindness can tell apart; darkened on light ground and
// lightened on dark until each stands out from it.
const char* const kLightColours =
    "--ground:#ffffff;--ink:#1c2430;--note:#505a6b;--grid:#e1e6ee;"
    "--c0:#0068a8;--c1:#c85200;--c2:#00805c;--c3:#a8447f;--c4:#806400;--c5:#5a4fcf;--c6:#5f6b7a;--c7:#8c3b1f;";
const char* const kDarkColours =
    "--ground:#12161d;--ink:#e6ebf3;--note:#aab4c4;--grid:#2a3341;"
    "--c0:#56b4e9;--c1:#ff9f5a;--c2:#3ccf9f;--c3:#e59ac5;--c4:#e6c84c;--c5:#a79bff;--c6:#a8b3c2;--c7:#d98f74;";

std::string escape_markup(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = allowed_length(text);
    const std::string_view character = text.substr(0, length);
    if (length == 0) out += "\xEF\xBF\xBD";
    else if (character == "&") out += "&amp;";
    else if (character == "<") out += "&lt;";
    else if (character == ">") out += "&gt;";
    else if (character == "\"") out += "&quot;";
    else if (character == "'") out += "&#39;";
    else out += character;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace stepwell::io
