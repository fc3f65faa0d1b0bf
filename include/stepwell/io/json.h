// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "stepwell/core/config.h"

namespace stepwell::io {

// Strict: JSON (RFC 8259). Config: also the bare words Infinity, -Infinity and NaN as numbers, which Python's json
// module writes into published config.json files.
enum class JsonDialect { Strict, Config };

// Reads one JSON value. Numbers without fraction and exponent that fit 64 bits are integers, others doubles; in both
// dialects the object {"__float__": "Infinity"} (or "-Infinity", "NaN"), which newer checkpoints use, is that number.
// Throws Error (File) naming `where`, line and column: whatever the grammar forbids, a key that is twice in an object,
// numbers beyond the range of double, more than 100 levels. Texts of more than 16 MiB are refused.
Config parse_json(std::string_view text, std::string_view where, JsonDialect dialect = JsonDialect::Strict);

// parse_json on a file.
Config read_json(const std::string& path, JsonDialect dialect = JsonDialect::Strict);

// Standard JSON that parse_json turns into an equal Config: keys in order, doubles in the fewest digits that read back
// as the same bits and marked by ".0" or an exponent, non-finite ones as {"__float__": …}. indent = 0: one line without
// spaces; otherwise one line per member, arrays of plain values on one line. Throws Error (Argument) for text that is
// not UTF-8.
std::string to_json(const Config& value, int indent = 2);

}  // namespace stepwell::io
