// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "stepwell/core/error.h"
#include "stepwell/io/file.h"

#include "io/json_lexer.h"

namespace stepwell::io {

namespace {

constexpr int kMaxDepth = 100;
constexpr std::size_t kLargestText = 16 << 20;
constexpr std::string_view kFloatKey = "__float__";
constexpr std::pair<std::string_view, double> kNonFinite[] = {
    {"Infinity", std::numeric_limits<double>::infinity()},
    {"-Infinity", -std::numeric_limits<double>::infinity()},
    {"NaN", std::numeric_limits<double>::quiet_NaN()},
};

// A text for a message: bytes beyond ASCII as \xNN.
std::string ascii_of(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) result += c;
    else result += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return result;
}

class JsonParser {
 public:
  JsonParser(std::string_view text, std::string_view where, JsonDialect dialect)
      : lexer_(text, where), dialect_(dialect) {}

  Config document() {
    Config result = value(0);
    if (!lexer_.at_end()) lexer_.fail("text after the end of the value");
    return result;
  }

 private:
  Config value(int depth) {
    const char c = lexer_.peek();
    if (depth > kMaxDepth) lexer_.fail("more than " + std::to_string(kMaxDepth) + " levels");
    if (c == '{') return object(depth);
    if (c == '[') return array(depth);
    if (c == '"') return lexer_.string();
    if (lexer_.take_word("null")) return {};
    if (lexer_.take_word("true")) return true;
    if (lexer_.take_word("false")) return false;
    for (const auto& [word, number] : kNonFinite) {
      const std::size_t at = lexer_.position();
      if (!lexer_.take_word(word)) continue;
      if (dialect_ == JsonDialect::Config) return number;
      lexer_.fail_at(at, std::string(word) + " is no JSON number");
    }
    if (c == '/' || c == '#') lexer_.fail("JSON has no comments");
    if (c != '-' && (c < '0' || c > '9')) lexer_.fail(lexer_.at_end() ? "the text ends" : "expected a value");
    return number();
  }

  Config number() {
    const std::size_t at = lexer_.position();
    const std::string_view text = lexer_.number();
    const char *begin = text.data(), *end = begin + text.size();
    if (text.find_first_of(".eE") == std::string_view::npos) {
      std::int64_t integer = 0;
      if (std::from_chars(begin, end, integer).ec == std::errc()) return integer;
    }
    double number = 0;
    if (std::from_chars(begin, end, number).ec != std::errc()) {
      lexer_.fail_at(at, std::string(text.substr(0, 40)) + " is beyond the range of a double");
    }
    return number;
  }

  Config array(int depth) {
    Config::Array items;
    lexer_.expect('[');
    if (lexer_.take(']')) return items;
    do items.push_back(value(depth + 1));
    while (another(']'));
    return items;
  }

  Config object(int depth) {
    const std::size_t at = lexer_.position();
    Config::Object members;
    lexer_.expect('{');
    if (lexer_.take('}')) return members;
    do {
      if (lexer_.peek() != '"') lexer_.fail("expected a key in quotes");
      std::string key = lexer_.string();
      lexer_.expect(':');
      members.emplace_back(std::move(key), value(depth + 1));
    } while (another('}'));
    check_keys(at, members);
    if (members.size() == 1 && members[0].first == kFloatKey && members[0].second.is_string()) {
      for (const auto& [word, number] : kNonFinite) {
        if (members[0].second.as_string(kFloatKey) == word) return number;
      }
    }
    return members;
  }

  // Takes a comma, which announces another item, or the closing bracket.
  bool another(char close) {
    if (lexer_.take(close)) return false;
    if (!lexer_.take(',')) {
      if (lexer_.peek() == '/' || lexer_.peek() == '#') lexer_.fail("JSON has no comments");
      lexer_.fail(std::string("expected ',' or '") + close + "'");
    }
    if (lexer_.peek() == close) lexer_.fail(std::string("a comma before '") + close + "'");
    return true;
  }

  void check_keys(std::size_t at, const Config::Object& members) {
    std::vector<std::string_view> keys;
    keys.reserve(members.size());
    for (const auto& member : members) keys.push_back(member.first);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) lexer_.fail_at(at, "key " + quoted_for_message(*twice) + " twice in this object");
  }

  JsonLexer lexer_;
  JsonDialect dialect_;
};

// ---------------------------------------------------------------------------------------------------------- writing

class JsonWriter {
 public:
  explicit JsonWriter(int indent) : indent_(indent) {}

  std::string take() && { return std::move(out_); }

  void value(const Config& v, int depth) {
    if (v.is_null()) {
      out_ += "null";
    } else if (v.is_bool()) {
      out_ += v.as_bool("to_json") ? "true" : "false";
    } else if (v.is_integer()) {
      out_ += std::to_string(v.as_integer("to_json"));
    } else if (v.is_number()) {
      number(v.as_double("to_json"));
    } else if (v.is_string()) {
      string(v.as_string("to_json"));
    } else if (v.is_array()) {
      array(v.as_array("to_json"), depth);
    } else {
      object(v.as_object("to_json"), depth);
    }
  }

 private:
  void number(double x) {
    if (!std::isfinite(x)) {
      const auto& word = kNonFinite[std::isnan(x) ? 2 : x < 0 ? 1 : 0].first;
      return object({{std::string(kFloatKey), Config(std::string(word))}}, 0, false);
    }
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof(digits), x).ptr;
    const std::string_view text(digits, static_cast<std::size_t>(end - digits));
    out_ += text;
    if (text.find_first_of(".e") == std::string_view::npos) out_ += ".0";
  }

  void string(const std::string& text) {
    STEPWELL_CHECK(is_utf8(text), "to_json",
                   "\"" + ascii_of(text) + "\" is not UTF-8: JSON cannot hold it (of a file name: give it another)");
    append_quoted(out_, text);
  }

  void array(const Config::Array& items, int depth) {
    const bool broken =
        std::any_of(items.begin(), items.end(), [](const Config& v) { return v.is_array() || v.is_object(); });
    out_ += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      separate(i, depth + 1, broken);
      value(items[i], depth + 1);
    }
    close(']', depth, broken && !items.empty());
  }

  void object(const Config::Object& members, int depth, bool broken = true) {
    out_ += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      separate(i, depth + 1, broken);
      string(members[i].first);
      out_ += indent_ > 0 ? ": " : ":";
      value(members[i].second, depth + 1);
    }
    close('}', depth, broken && !members.empty());
  }

  // What stands before item i of an array or object, broken into lines or not.
  void separate(std::size_t i, int depth, bool broken) {
    if (i > 0) out_ += ',';
    if (indent_ <= 0) return;
    if (broken) {
      line(depth);
    } else if (i > 0) {
      out_ += ' ';
    }
  }

  void close(char bracket, int depth, bool broken) {
    if (broken && indent_ > 0) line(depth);
    out_ += bracket;
  }

  void line(int depth) {
    out_ += '\n';
    const int spaces = indent_ * depth;
    out_.append(static_cast<std::size_t>(spaces), ' ');
  }

  int indent_;
  std::string out_;
};

}  // namespace

Config parse_json(std::string_view text, std::string_view where, JsonDialect dialect) {
  if (text.size() > kLargestText) {
    fail(ErrorCode::File, where,
         "has " + std::to_string(text.size()) + " bytes of JSON, expected at most " + std::to_string(kLargestText));
  }
  return JsonParser(text, where, dialect).document();
}

Config read_json(const std::string& path, JsonDialect dialect) {
  return parse_json(read_file(path, kLargestText), path, dialect);
}

std::string to_json(const Config& value, int indent) {
  JsonWriter writer(indent);
  writer.value(value, 0);
  return std::move(writer).take();
}

}  // namespace stepwell::io
