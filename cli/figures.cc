// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/figures.h"

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "stepwell/io/json.h"

#include "cli/progress.h"
#include "cli/table.h"

namespace stepwell::cli {

namespace {

// Four decimals where that says something.
std::string figure_text(double x) {
  const double size = std::fabs(x);
  return x == 0 || (size >= 0.01 && size < 1e5) || !std::isfinite(x) ? decimal(x, 4) : significant(x);
}

}  // namespace

void print_figures(const train::Figures& figures, bool json) {
  if (json) {
    Config::Object members;
    for (const auto& [name, value] : figures) {
      members.emplace_back(name, std::isfinite(value) ? Config(value) : Config());  // JSON has no NaN
    }
    std::printf("%s\n", io::to_json(Config(std::move(members))).c_str());
    return;
  }
  if (figures.size() < 3) {
    std::printf("nothing held out, nothing to measure\n");
    return;
  }
  const auto& [measure, model] = figures.front();
  const auto& [unit, count] = figures.back();
  const auto& [first_rival, reference] = figures[1];
  const bool ratio = measure != "accuracy";  // of errors; shares speak for themselves
  Table table({"held out", ">" + spaced(measure), ratio ? ">of " + spaced(first_rival) : ""});
  for (std::size_t i = 0; i + 1 < figures.size(); ++i) {
    const auto& [name, value] = figures[i];
    table.row({i == 0 ? "model" : spaced(name), figure_text(value), ratio ? decimal(value / reference, 3) : ""});
  }
  table.print(stdout);
  std::printf("over %s %s\n", with_commas(static_cast<long long>(count)).c_str(), unit.c_str());
}

}  // namespace stepwell::cli
