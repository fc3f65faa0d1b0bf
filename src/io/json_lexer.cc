// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "io/json_lexer.h"

#include <algorithm>
#include <charconv>

#include "stepwell/core/error.h"

namespace stepwell::io {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_character(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Length of the well-formed UTF-8 sequence at the start of `text`, 0 if there is none (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (text.empty()) return 0;
  if (first < 0x80) return 1;
  auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    return follows(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    return follows(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

void append_utf8(std::string& out, std::uint32_t code) {
  auto push = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return push(code);
  if (code < 0x800) {
    push(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      push(0xE0 | code >> 12);
    } else {
      push(0xF0 | code >> 18);
      push(0x80 | (code >> 12 & 0x3F));
    }
    push(0x80 | (code >> 6 & 0x3F));
  }
  push(0x80 | (code & 0x3F));
}

// Value of four hexadecimal digits, or a number above 0xFFFF.
std::uint32_t parse_hex4(std::string_view text) {
  std::uint32_t value = 0x10000;
  if (text.size() < 4) return value;
  const char *first = text.data(), *end = first + 4;
  const auto [stop, error] = std::from_chars(first, end, value, 16);
  return error == std::errc() && stop == end ? value : 0x10000;
}

bool is_high_surrogate(std::uint32_t code) { return code >= 0xD800 && code < 0xDC00; }
bool is_low_surrogate(std::uint32_t code) { return code >= 0xDC00 && code < 0xE000; }

}  // namespace

void JsonLexer::fail_at(std::size_t position, const std::string& message) const {
  const std::string_view before = text_.substr(0, position);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const auto start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? position + 1 : position - start;
  std::string text = "line " + std::to_string(line) + ", column " + std::to_string(column) + ": ";
  if (subject_.data() != nullptr) text += "tensor " + quoted_for_message(decode_raw_string(subject_)) + ": ";
  stepwell::fail(ErrorCode::File, where_, text + message);
}

char JsonLexer::peek() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return c;
    ++position_;
  }
  return '\0';
}

bool JsonLexer::take(char c) {
  if (peek() != c || position_ == text_.size()) return false;
  ++position_;
  return true;
}

void JsonLexer::expect(char c) {
  if (!take(c)) fail(std::string("expected '") + c + "'" + (at_end() ? ", the text ends" : ""));
}

bool JsonLexer::take_word(std::string_view word) {
  peek();
  const std::string_view rest = text_.substr(position_);
  if (!rest.starts_with(word) || (rest.size() > word.size() && is_word_character(rest[word.size()]))) return false;
  position_ += word.size();
  return true;
}

std::string JsonLexer::string() { return decode_raw_string(raw_string()); }

std::string_view JsonLexer::raw_string() {
  if (!take('"')) fail("expected a string");
  const std::size_t begin = position_;
  for (;;) {
    if (position_ == text_.size()) fail_at(begin - 1, "this string does not end");
    const char c = text_[position_];
    if (c == '"') return text_.substr(begin, position_++ - begin);
    if (static_cast<unsigned char>(c) < 0x20) fail("unescaped control character in a string");
    if (c == '\\') {
      escape();
    } else if (static_cast<unsigned char>(c) < 0x80) {
      ++position_;
    } else {
      const std::size_t length = utf8_length(text_.substr(position_));
      if (length == 0) fail("not UTF-8");
      position_ += length;
    }
  }
}

void JsonLexer::escape() {
  const std::size_t begin = position_++;
  const char c = position_ < text_.size() ? text_[position_++] : '\0';
  if (c == 'u') {
    const std::uint32_t code = hex4();
    if (is_low_surrogate(code)) fail_at(begin, "lone surrogate");
    if (is_high_surrogate(code)) {
      if (!text_.substr(position_).starts_with("\\u")) fail_at(begin, "lone surrogate");
      position_ += 2;
      if (!is_low_surrogate(hex4())) fail_at(begin, "lone surrogate");
    }
  } else if (c == '\0' || std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) {
    fail_at(begin, "unknown escape in a string");
  }
}

std::uint32_t JsonLexer::hex4() {
  const std::uint32_t code = parse_hex4(text_.substr(position_));
  if (code > 0xFFFF) fail("expected four hexadecimal digits");
  position_ += 4;
  return code;
}

bool JsonLexer::digits() {
  const std::size_t begin = position_;
  while (position_ < text_.size() && is_digit(text_[position_])) ++position_;
  return position_ > begin;
}

std::string_view JsonLexer::number() {
  peek();
  const std::size_t begin = position_;
  auto next = [&] { return position_ < text_.size() ? text_[position_] : '\0'; };
  if (next() == '-') ++position_;
  if (next() == '0') {
    ++position_;
    if (is_digit(next())) fail_at(begin, "a number with a leading zero");
  } else if (!digits()) {
    fail_at(begin, "expected a number");
  }
  if (next() == '.') {
    ++position_;
    if (!digits()) fail("expected digits after the decimal point");
  }
  if (next() == 'e' || next() == 'E') {
    ++position_;
    if (next() == '+' || next() == '-') ++position_;
    if (!digits()) fail("expected digits in the exponent");
  }
  return text_.substr(begin, position_ - begin);
}

std::uint64_t JsonLexer::unsigned_integer() {
  peek();
  const std::size_t begin = position_;
  const std::string_view text = number();
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) fail_at(begin, "number of 2^64 or more");
  if (error != std::errc() || stop != text.data() + text.size()) {
    fail_at(begin, std::string(text.substr(0, 40)) + ", expected a non-negative integer");
  }
  return value;
}

std::string decode_raw_string(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size();) {
    const std::size_t plain = std::min(raw.find('\\', i), raw.size());
    out.append(raw.substr(i, plain - i));
    i = plain;
    if (i == raw.size()) break;
    const char c = raw[i + 1];
    i += 2;
    if (c == 'u') {
      std::uint32_t code = parse_hex4(raw.substr(i));
      i += 4;
      if (is_high_surrogate(code)) {
        code = 0x10000 + ((code - 0xD800) << 10) + (parse_hex4(raw.substr(i + 2)) - 0xDC00);
        i += 6;
      }
      append_utf8(out, code);
    } else {
      constexpr std::string_view kLetters = "bfnrt", kMeanings = "\b\f\n\r\t";
      const auto at = kLetters.find(c);
      out += at == std::string_view::npos ? c : kMeanings[at];
    }
  }
  return out;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void append_quoted(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string quoted_for_message(std::string_view text) {
  constexpr std::size_t kLongest = 100;
  std::string out;
  if (text.size() <= kLongest) {
    append_quoted(out, text);
  } else {
    std::size_t cut = kLongest;
    while (cut > kLongest - 4 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;  // whole characters
    append_quoted(out, text.substr(0, cut));
    out += "… (" + std::to_string(text.size()) + " bytes)";
  }
  return out;
}

}  // namespace stepwell::io
