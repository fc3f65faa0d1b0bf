// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/series.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "stepwell/core/config.h"
#include "stepwell/core/error.h"
#include "stepwell/io/file.h"

namespace stepwell::train {

namespace {

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

double parse_number(const std::string& path, std::size_t line, const std::string& field) {
  double value = 0;
  const char* end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) {
    csv_error(path, line, "\"" + field + "\", expected a finite number");
  }
  return value;
}

}  // namespace

std::vector<double> read_csv_column(const std::string& path, const std::string& column) {
  const io::MappedFile file = io::MappedFile::open(path);
  std::string_view rest(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  std::vector<double> values;
  std::size_t index = 0, line = 0;
  bool header = true;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = trim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++line;
    if (text.empty()) continue;
    const std::vector<std::string> fields = split_fields(text);
    if (header) {
      header = false;
      index = static_cast<std::size_t>(std::find(fields.begin(), fields.end(), column) - fields.begin());
      if (index < fields.size()) continue;
      const auto near = nearest_name(column, fields);
      csv_error(path, line, "no column " + column + (near.empty() ? "" : ", did you mean " + std::string(near) + "?"));
    }
    if (index >= fields.size()) {
      csv_error(path, line, std::to_string(fields.size()) + " fields, expected at least " + std::to_string(index + 1));
    }
    values.push_back(parse_number(path, line, fields[index]));
  }
  if (values.empty()) fail(ErrorCode::File, "csv", path + " has no rows");
  return values;
}

}  // namespace stepwell::train
