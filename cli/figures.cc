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
  const auto& [measure, model] = figures[0];
  const auto& [rival, simple] = figures[1];
  const auto& [unit, count] = figures[2];
  Table table({"held out", ">" + spaced(measure), ">of " + spaced(rival)});
  table.row({"model", decimal(model, 4), decimal(model / simple, 3)});
  table.row({spaced(rival), decimal(simple, 4), decimal(1, 3)});
  table.print(stdout);
  std::printf("over %s %s\n", with_commas(static_cast<long long>(count)).c_str(), unit.c_str());
}

}  // namespace stepwell::cli
