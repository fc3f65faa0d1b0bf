// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/measure/workload.h"

namespace stepwell::bench {

// The measured limits as lines of text.
std::string limits_text(const Limits& limits);
// The records as an aligned table, contenders in columns of their own.
std::string table_text(const std::vector<Record>& records);
// Everything as one JSON object {limits, records}.
std::string json_text(const Limits& limits, const std::vector<Record>& records);

}  // namespace stepwell::bench
