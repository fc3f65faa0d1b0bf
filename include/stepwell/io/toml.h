// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "stepwell/core/config.h"

namespace stepwell::io {

// Reads a TOML document; keys keep the order of the text. In stepwell::stepwell only. Throws Error (File) naming
// `where`, line and column: whatever the grammar forbids, dates and times (Config has none), keys of more than 32
// parts. Texts of more than 1 MiB are refused.
Config parse_toml(std::string_view text, std::string_view where);

// parse_toml on a file.
Config read_toml(const std::string& path);

}  // namespace stepwell::io
