// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "stepwell/core/config.h"

namespace stepwell::cli {

// Applies --set section.key=value to a recipe, values as TOML has them (3, 0.5, true, "text", [1, 2]) or plain words.
// Throws Error (Config) for another form, suggesting the section of `known`, a whole recipe, that has such a key.
void apply_settings(Config& recipe, const std::vector<std::string>& settings, const Config& known);

// runs/NAME, after the file or folder that a run starts from.
std::string default_run_folder(const std::string& source);

}  // namespace stepwell::cli
