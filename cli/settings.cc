// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/settings.h"

#include <filesystem>

#include "stepwell/core/error.h"
#include "stepwell/io/toml.h"

namespace stepwell::cli {

namespace {

[[noreturn]] void usage(const std::string& message) { fail(ErrorCode::Config, "--set", message); }

Config parse_value(const std::string& text) {
  try {
    const Config parsed = io::parse_toml("value = " + text, "--set");
    if (parsed.as_object("--set").size() == 1) return *parsed.find("value");
  } catch (const Error&) {
    // A word without quotes.
  }
  return Config(text);
}

void apply_setting(Config& recipe, const std::string& setting, const Config& known) {
  const auto equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) usage(setting + ", expected key=value");
  const std::string key = setting.substr(0, equals);
  if (key.find('.') == std::string::npos) {
    std::string sections, suggestion;
    for (const auto& [section, members] : known.as_object("recipe")) {
      sections += (sections.empty() ? "" : ", ") + section;
      if (members.find(key)) suggestion += (suggestion.empty() ? "; did you mean " : " or ") + section + "." + key;
    }
    if (!suggestion.empty()) suggestion += "?";
    usage(setting + ": expected section.key=value, with a section out of " + sections + suggestion);
  }
  recipe.set_path(key, parse_value(setting.substr(equals + 1)));
}

}  // namespace

void apply_settings(Config& recipe, const std::vector<std::string>& settings, const Config& known) {
  for (const std::string& setting : settings) apply_setting(recipe, setting, known);
}

std::string default_run_folder(const std::string& source) {
  std::filesystem::path path = std::filesystem::absolute(source).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return "runs/" + path.stem().native();
}

}  // namespace stepwell::cli
