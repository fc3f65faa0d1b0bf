// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stepwell::io {

// Reads the tokens of a JSON text (RFC 8259) one by one, for a parser that knows what may come next. Strict: UTF-8,
// paired surrogates, no comments. Allocates nothing but the strings it returns, recurses nowhere. Faults throw
// Error (File) with `where`, line and column.
class JsonLexer {
 public:
  // Both texts must outlive the lexer.
  JsonLexer(std::string_view text, std::string_view where, std::size_t position = 0)
      : text_(text), where_(where), position_(position) {}

  // Passes over white space and tells the next character; '\0' at the end.
  char peek();
  bool at_end() { return peek() == '\0' && position_ == text_.size(); }
  // Takes `c` if it comes next.
  bool take(char c);
  void expect(char c);
  // Takes the literal `word` if it comes next as a word of its own.
  bool take_word(std::string_view word);

  // A string: decoded; or as written, without its quotes, checked all the same.
  std::string string();
  std::string_view raw_string();

  // A number as written, checked against the grammar.
  std::string_view number();
  // A non-negative integer below 2^64, written without fraction or exponent.
  std::uint64_t unsigned_integer();

  std::size_t position() const { return position_; }
  // Faults from here on name this tensor (its raw_string, which may be empty); {}: none.
  void set_subject(std::string_view raw_name) { subject_ = raw_name; }
  // Throws at the current position, or at `position`.
  [[noreturn]] void fail(const std::string& message) const { fail_at(position_, message); }
  [[noreturn]] void fail_at(std::size_t position, const std::string& message) const;

 private:
  bool digits();
  void escape();
  std::uint32_t hex4();
  void utf8_sequence();

  std::string_view text_, where_, subject_;
  std::size_t position_;
};

// The text of a string whose raw form has passed JsonLexer.
std::string decode_raw_string(std::string_view raw);

// Whether `text` is well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

// Appends `text` (UTF-8) as a JSON string with its quotes.
void append_quoted(std::string& out, std::string_view text);

// `text` in quotes for a message: escaped, and cut after some 100 bytes.
std::string quoted_for_message(std::string_view text);

}  // namespace stepwell::io
