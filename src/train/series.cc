// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/series.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "stepwell/core/config.h"
#include "stepwell/core/error.h"
#include "stepwell/io/file.h"

namespace stepwell::train {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // put before UTF-8 by some programs

[[noreturn]] void csv_error(const std::string& path, std::size_t line, const std::string& message) {
  fail(ErrorCode::File, "csv", path + " line " + std::to_string(line) + ": " + message);
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Splits one line at commas outside quotes; a doubled quote inside quotes stands for one.
std::vector<std::string> split_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      const bool doubled = quoted && i + 1 < line.size() && line[i + 1] == '"';
      if (doubled) fields.back() += line[++i];
      else quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  for (std::string& field : fields) field = std::string(trim(field));
  return fields;
}

std::optional<double> number_of(const std::string& field) {
  double value = 0;
  const char* end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool is_number(const std::string& field) { return number_of(field).has_value(); }

// Which field of a row `column` names, given the first row's: among the names it holds, or a number.
std::size_t find_column(const std::string& path, std::size_t line, const std::string& column,
                        const std::vector<std::string>& first, bool names) {
  const auto named = static_cast<std::size_t>(std::find(first.begin(), first.end(), column) - first.begin());
  if (names && std::ranges::count(first, column) > 1) {
    csv_error(path, line, "more than one column " + column + ", name it by its number");
  }
  if (names && named < first.size()) return named;
  std::size_t number = 0;
  const auto [stop, error] = std::from_chars(column.data(), column.data() + column.size(), number);
  if (error == std::errc() && stop == column.data() + column.size() && number >= 1 && number <= first.size()) {
    return number - 1;
  }
  const auto near = names ? nearest_name(column, first) : std::string_view();
  const std::string count = std::to_string(first.size()) + (first.size() == 1 ? " column" : " columns");
  csv_error(path, line,
            "no column " + column + (near.empty() ? "" : ", did you mean " + std::string(near) + "?") +
                (names ? " (a number from 1 to " + std::to_string(first.size()) + " will do, too)"
                       : " in " + count + " without names, expected a number from 1 on"));
}

}  // namespace

std::vector<double> read_csv_column(const std::string& path, const std::string& column) {
  const io::MappedFile file = io::MappedFile::open(path);
  std::string_view rest(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  std::vector<double> values;
  std::size_t index = 0, line = 0;
  bool first = true;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = trim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++line;
    if (text.empty()) continue;
    const std::vector<std::string> fields = split_fields(text);
    if (first) {
      first = false;
      const bool names = std::ranges::none_of(fields, is_number) ||
                         (!is_number(column) && std::ranges::find(fields, column) != fields.end());
      index = find_column(path, line, column, fields, names);
      if (names) continue;
    }
    if (index >= fields.size()) {
      csv_error(path, line, std::to_string(fields.size()) + " fields, expected at least " + std::to_string(index + 1));
    }
    const std::optional<double> value = number_of(fields[index]);
    if (!value) {
      csv_error(path, line,
                fields[index].empty() ? "no value in column " + column
                                      : "\"" + fields[index] + "\" in column " + column + ", expected a finite number");
    }
    values.push_back(*value);
  }
  if (values.empty()) fail(ErrorCode::File, "csv", path + " has no rows");
  return values;
}

}  // namespace stepwell::train
