// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace stepwell::train {

// The numbers of one column of a CSV file: first line the column names, then one row per line, fields separated by
// commas, optionally in double quotes. Empty lines are skipped. Throws Error (File) naming file, line and what was
// found: no such column (the nearest named), a field that is not a finite number, a row that is too short, no rows.
std::vector<double> read_csv_column(const std::string& path, const std::string& column);

}  // namespace stepwell::train
