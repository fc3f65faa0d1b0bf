// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/toml.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <toml++/toml.h>

#include "stepwell/core/error.h"
#include "stepwell/io/file.h"

namespace stepwell::io {

namespace {

constexpr std::size_t kLargestText = 1 << 20;

[[noreturn]] void fail_at(std::string_view where, const toml::source_position& at, const std::string& message) {
  fail(ErrorCode::File, where,
       "line " + std::to_string(at.line) + ", column " + std::to_string(at.column) + ": " + message);
}

// toml++ limits how deep values nest but not how many parts a dotted key has, and it destroys tables recursively: a key
// of 200,000 parts overflows the stack. Looks for runs of dots outside strings and comments.
void check_key_lengths(std::string_view text, std::string_view where) {
  constexpr int kMaxParts = 32;
  std::uint32_t line = 1;
  int parts = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      const bool triple = i + 2 < text.size() && text[i + 1] == c && text[i + 2] == c;
      const std::string_view quotes = triple ? text.substr(i, 3) : text.substr(i, 1);
      for (i += quotes.size(); i < text.size() && !text.substr(i).starts_with(quotes); ++i) {
        if (text[i] == '\n') {
          if (!triple) return;  // an unfinished string, which the parser reports
          ++line;
        }
        if (c == '"' && text[i] == '\\') ++i;
      }
      i += quotes.size() - 1;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '.') {
      if (++parts > kMaxParts) {
        fail_at(where, {line, 1}, "a key of more than " + std::to_string(kMaxParts) + " parts");
      }
    } else if (c == '\n') {
      ++line;
      parts = 1;
    } else if (c == '=' || c == ',' || c == '{') {
      parts = 1;
    }
  }
}

Config convert(const toml::node& node, std::string_view where);

Config convert_table(const toml::table& table, std::string_view where) {
  std::vector<std::pair<const toml::key*, const toml::node*>> entries;
  for (const auto& [key, value] : table) entries.emplace_back(&key, &value);
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.first->source().begin < b.first->source().begin; });
  Config::Object members;
  members.reserve(entries.size());
  for (const auto& [key, value] : entries) members.emplace_back(std::string(key->str()), convert(*value, where));
  return members;
}

Config convert(const toml::node& node, std::string_view where) {
  switch (node.type()) {
    case toml::node_type::table: return convert_table(*node.as_table(), where);
    case toml::node_type::array: {
      Config::Array items;
      for (const auto& item : *node.as_array()) items.push_back(convert(item, where));
      return items;
    }
    case toml::node_type::string: return node.as_string()->get();
    case toml::node_type::integer: return node.as_integer()->get();
    case toml::node_type::floating_point: return node.as_floating_point()->get();
    case toml::node_type::boolean: return node.as_boolean()->get();
    default: fail_at(where, node.source().begin, "a date or time, expected a string, number, boolean, array or table");
  }
}

}  // namespace

Config parse_toml(std::string_view text, std::string_view where) {
  if (text.size() > kLargestText) {
    fail(ErrorCode::File, where,
         "has " + std::to_string(text.size()) + " bytes of TOML, expected at most " + std::to_string(kLargestText));
  }
  check_key_lengths(text, where);
  try {
    return convert_table(toml::parse(text, where), where);
  } catch (const toml::parse_error& e) {
    fail_at(where, e.source().begin, std::string(e.description()));
  }
}

Config read_toml(const std::string& path) { return parse_toml(read_file(path, kLargestText), path); }

}  // namespace stepwell::io
