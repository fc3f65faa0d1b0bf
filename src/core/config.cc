// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/config.h"

#include <algorithm>
#include <charconv>

namespace stepwell {

namespace {

// The fewest digits that are this number.
std::string shown(double x) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

std::string kind_of(const Config& v) {
  if (v.is_null()) return "null";
  if (v.is_bool()) return v.as_bool("") ? "true" : "false";
  if (v.is_integer()) return std::to_string(v.as_integer(""));
  if (v.is_number()) return shown(v.as_double(""));
  if (v.is_string()) return "\"" + v.as_string("") + "\"";
  return v.is_array() ? "an array" : "an object";
}

[[noreturn]] void wrong_kind(std::string_view where, const Config& value, const char* expected) {
  fail(ErrorCode::Config, where, "is " + kind_of(value) + ", expected " + expected);
}

}  // namespace

bool Config::as_bool(std::string_view where) const {
  if (!is_bool()) wrong_kind(where, *this, "true or false");
  return std::get<bool>(value_);
}
std::int64_t Config::as_integer(std::string_view where) const {
  if (!is_integer()) wrong_kind(where, *this, "an integer");
  return std::get<std::int64_t>(value_);
}
double Config::as_double(std::string_view where) const {
  if (is_integer()) return static_cast<double>(std::get<std::int64_t>(value_));
  if (!is_number()) wrong_kind(where, *this, "a number");
  return std::get<double>(value_);
}
const std::string& Config::as_string(std::string_view where) const {
  if (!is_string()) wrong_kind(where, *this, "a string");
  return std::get<std::string>(value_);
}
const Config::Array& Config::as_array(std::string_view where) const {
  if (!is_array()) wrong_kind(where, *this, "an array");
  return std::get<Array>(value_);
}
const Config::Object& Config::as_object(std::string_view where) const {
  if (!is_object()) wrong_kind(where, *this, "an object");
  return std::get<Object>(value_);
}

const Config* Config::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto& [name, value] : std::get<Object>(value_)) {
    if (name == key) return &value;
  }
  return nullptr;
}

void Config::set(std::string_view key, Config value) {
  if (is_null()) value_ = Object{};
  if (!is_object()) wrong_kind(key, *this, "an object to set a member of");
  auto& members = std::get<Object>(value_);
  for (auto& [name, old] : members) {
    if (name == key) {
      old = std::move(value);
      return;
    }
  }
  members.emplace_back(std::string(key), std::move(value));
}

void Config::set_path(std::string_view dotted, Config value) {
  const auto dot = dotted.find('.');
  if (dot == std::string_view::npos) return set(dotted, std::move(value));
  const auto head = dotted.substr(0, dot);
  const Config* old = find(head);
  Config inner = old ? *old : Config();
  inner.set_path(dotted.substr(dot + 1), std::move(value));
  set(head, std::move(inner));
}

// --------------------------------------------------------------------------------------------------- ConfigReader

ConfigReader::ConfigReader(const Config& config, std::string where) : config_(config), where_(std::move(where)) {
  if (!config_.is_null() && !config_.is_object()) wrong_kind(where_, config_, "an object");
}

const Config* ConfigReader::get(std::string_view key) {
  known_.emplace(key);
  const Config* value = config_.find(key);
  return value && !value->is_null() ? value : nullptr;
}

void ConfigReader::reject(std::string_view key, const std::string& rule) const {
  const Config* value = config_.find(key);
  fail(ErrorCode::Config, where_,
       std::string(key) + " = " + (value ? kind_of(*value) : "absent") + ", expected " + rule);
}

bool ConfigReader::has(std::string_view key) { return get(key) != nullptr; }

bool ConfigReader::boolean(std::string_view key, bool fallback) {
  const Config* v = get(key);
  if (v && !v->is_bool()) reject(key, "true or false");
  return v ? v->as_bool(key) : fallback;
}

std::int64_t ConfigReader::integer(std::string_view key, std::int64_t fallback, std::int64_t low, std::int64_t high) {
  const Config* v = get(key);
  const std::string rule = "an integer from " + std::to_string(low) + " to " + std::to_string(high);
  if (v && !v->is_integer()) reject(key, rule);
  const std::int64_t x = v ? v->as_integer(key) : fallback;
  if (v && (x < low || x > high)) reject(key, rule);
  return x;
}

double ConfigReader::number(std::string_view key, double fallback, double low, double high) {
  const Config* v = get(key);
  if (v && !v->is_number()) reject(key, "a number");
  const double x = v ? v->as_double(key) : fallback;
  if (v && !(x >= low && x <= high)) reject(key, "a number from " + shown(low) + " to " + shown(high));
  return x;
}

std::string ConfigReader::text(std::string_view key, std::string_view fallback) {
  const Config* v = get(key);
  if (v && !v->is_string()) reject(key, "a string");
  return v ? v->as_string(key) : std::string(fallback);
}

int ConfigReader::choice(std::string_view key, std::string_view fallback, std::span<const std::string_view> choices) {
  const std::string word = text(key, fallback);
  std::string rule = "one of";
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == word) return static_cast<int>(i);
    rule += (i ? ", " : " ") + std::string(choices[i]);
  }
  reject(key, rule);
}

Config ConfigReader::child(std::string_view key) {
  const Config* v = get(key);
  if (v && !v->is_object()) reject(key, "an object");
  return v ? *v : Config();
}

Config ConfigReader::list(std::string_view key) {
  const Config* v = get(key);
  if (v && !v->is_array()) reject(key, "a list");
  return v ? *v : Config();
}

void ConfigReader::ignore(std::string_view key) { known_.emplace(key); }

void ConfigReader::finish() const {
  if (!config_.is_object()) return;
  for (const auto& [name, value] : config_.as_object(where_)) {
    if (known_.contains(name)) continue;
    const std::vector<std::string> names(known_.begin(), known_.end());
    const auto near = nearest_name(name, names);
    std::string all;
    for (const auto& n : names) all += (all.empty() ? "" : ", ") + n;
    fail(ErrorCode::Config, where_,
         "unknown key " + name + (near.empty() ? "" : ", did you mean " + std::string(near) + "?") + "; known: " + all);
  }
}

std::string_view nearest_name(std::string_view word, std::span<const std::string> candidates) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i + 1;
      for (std::size_t j = 0; j < candidate.size(); ++j) {
        const std::size_t replaced = diagonal + (word[i] != candidate[j]);
        diagonal = row[j + 1];
        row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace stepwell
