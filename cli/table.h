// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::cli {

// Rows of text in aligned columns, two spaces apart. UTF-8 counts one column per code point.
class Table {
 public:
  // Columns whose title starts with '>' are aligned to the right (the sign is not printed). Without titles: no head.
  explicit Table(std::vector<std::string> titles);
  void row(std::vector<std::string> cells);
  void print(std::FILE* out) const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;  // the titles first
};

// `x` with `digits` decimals.
std::string decimal(double x, int digits);

// `x` in so many significant digits, at most.
std::string significant(double x, int digits = 6);

// 1234567 → "1,234,567".
std::string with_commas(long long n);

// Text that came from outside, with control characters shown as \xNN, so that it cannot drive a terminal.
std::string printable(std::string_view text);

}  // namespace stepwell::cli
