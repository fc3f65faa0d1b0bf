// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "stepwell/core/config.h"
#include "stepwell/io/page.h"

namespace stepwell::cli {

struct NamedRecipe {
  std::string name;
  Config recipe;
};

// A section with a table of every key whose value is not the same in all recipes. The options of mixers and cells are
// left out where these differ, since others have other options.
void add_recipe_differences(io::HtmlPage& page, std::span<const NamedRecipe> recipes);

}  // namespace stepwell::cli
