// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/report/recipe_differences.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "stepwell/io/json.h"

namespace stepwell::cli {

namespace {

using Flat = std::map<std::string, std::string>;

// Every value of a recipe by its dotted name.
void flatten(const Config& value, const std::string& name, Flat& out) {
  if (!value.is_object()) {
    out[name] = value.is_string() ? value.as_string("recipe") : io::to_json(value, 0);
    return;
  }
  for (const auto& [key, member] : value.as_object("recipe")) {
    flatten(member, name.empty() ? key : name + "." + key, out);
  }
}

std::string value_of(const Flat& recipe, const std::string& key) {
  const auto found = recipe.find(key);
  return found == recipe.end() ? "–" : found->second;
}

bool same(const std::vector<Flat>& recipes, const std::string& key) {
  return std::ranges::all_of(recipes, [&](const Flat& r) { return value_of(r, key) == value_of(recipes[0], key); });
}

}  // namespace

void add_recipe_differences(io::HtmlPage& page, std::span<const NamedRecipe> recipes) {
  std::vector<std::string> titles = {""};
  std::vector<Flat> flat;
  std::set<std::string> keys;
  for (const auto& [name, recipe] : recipes) {
    titles.push_back(name);
    flatten(recipe, "", flat.emplace_back());
    for (const auto& [key, value] : flat.back()) keys.insert(key);
  }
  const bool one_mixer = same(flat, "model.mixer"), one_cell = same(flat, "cell.type");
  std::vector<std::vector<std::string>> rows;
  for (const std::string& key : keys) {
    if (same(flat, key) || (!one_mixer && key.starts_with("model.mixer_options"))) continue;
    if (!one_cell && key.starts_with("cell.") && key != "cell.type" && key != "cell.memory_width") continue;
    std::vector<std::string>& row = rows.emplace_back(1, key);
    for (const Flat& recipe : flat) row.push_back(value_of(recipe, key));
  }
  page.heading("What differs in the recipes");
  if (rows.empty()) page.paragraph("Nothing.");
  else page.table(titles, rows);
}

}  // namespace stepwell::cli
