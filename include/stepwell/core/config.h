// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "stepwell/core/error.h"

namespace stepwell {

// A configuration value as JSON or TOML hold it: null, bool, integer, number, string, array or object (keys in order).
class Config {
 public:
  using Array = std::vector<Config>;
  using Object = std::vector<std::pair<std::string, Config>>;

  Config() = default;  // null
  Config(bool v) : value_(v) {}
  Config(int v) : value_(std::int64_t{v}) {}
  Config(std::int64_t v) : value_(v) {}
  Config(double v) : value_(v) {}
  Config(const char* v) : value_(std::string(v)) {}
  Config(std::string v) : value_(std::move(v)) {}
  Config(Array v) : value_(std::move(v)) {}
  Config(Object v) : value_(std::move(v)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // The value; throws Error naming `where` when it is of another kind. as_double takes integers too.
  bool as_bool(std::string_view where) const;
  std::int64_t as_integer(std::string_view where) const;
  double as_double(std::string_view where) const;
  const std::string& as_string(std::string_view where) const;
  const Array& as_array(std::string_view where) const;
  const Object& as_object(std::string_view where) const;

  // Member of an object, or nullptr (also for anything that is not an object).
  const Config* find(std::string_view key) const;
  // Sets a member, turning null into an object. A dotted path ("model.layers") sets nested members with set_path.
  void set(std::string_view key, Config value);
  void set_path(std::string_view dotted, Config value);

  bool operator==(const Config&) const = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

// Reads the members of one object and remembers which were asked for; finish() throws for the rest, naming the nearest
// known key. Messages read `[where] key = value, expected …`.
class ConfigReader {
 public:
  ConfigReader(const Config& config, std::string where);

  bool has(std::string_view key);  // present and not null; counts as asked for
  bool boolean(std::string_view key, bool fallback);
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t low, std::int64_t high);
  double number(std::string_view key, double fallback, double low, double high);  // inclusive
  std::string text(std::string_view key, std::string_view fallback);
  // One of `choices`; returns its position.
  int choice(std::string_view key, std::string_view fallback, std::span<const std::string_view> choices);
  // A nested object or a list, or null.
  Config child(std::string_view key);
  Config list(std::string_view key);
  // Marks keys as known without reading them.
  void ignore(std::string_view key);
  [[noreturn]] void reject(std::string_view key, const std::string& rule) const;
  void finish() const;

 private:
  const Config* get(std::string_view key);
  Config config_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
};

// The candidate with the smallest edit distance to `word`, or "" when none is near.
std::string_view nearest_name(std::string_view word, std::span<const std::string> candidates);

}  // namespace stepwell
