// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace stepwell::train {

// The numbers of one column of a CSV file: one row per line, fields separated by commas, optionally in double quotes,
// empty lines skipped. The first line holds the columns' names if none of its fields is a number, or one is `column`
// and that is no number. `column` is a name, or
// a number from 1 on, which alone will do where there are no names (a column of that very name comes first). Throws
// Error (File) naming file, line and what was found: no such column (the nearest named), a field that is missing or not
// a finite number, a row that is too short, no rows.
std::vector<double> read_csv_column(const std::string& path, const std::string& column);

}  // namespace stepwell::train
