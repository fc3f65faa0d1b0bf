// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/io/chart.h"

#include "cli/progress.h"
#include "cli/report/pages.h"
#include "cli/report/recipe_differences.h"
#include "cli/report/series.h"
#include "cli/table.h"

namespace stepwell::cli {

namespace {

using io::Line;
using io::LineChart;
using io::number_text;

// The figure that the last evaluation is judged by, or an empty name.
std::pair<std::string, double> judged(const RunRecord& run) {
  if (run.evaluations.empty() || run.evaluations.back().figures.empty()) return {"", std::nan("")};
  return run.evaluations.back().figures.front();
}

void add_figures(io::HtmlPage& page, std::span<const RunRecord> runs) {
  std::vector<std::vector<std::string>> rows;
  io::BarChart bars;
  const std::string measure = judged(runs[0]).first;
  bool comparable = !measure.empty();
  for (const RunRecord& run : runs) {
    const auto [name, value] = judged(run);
    comparable = comparable && name == measure;
    rows.push_back({run.name, data_of(run.recipe), with_commas(run.parameters),
                    with_commas(static_cast<long long>(run.step.size())), number_text(mean_of_last(run.loss), 4),
                    spaced(name), number_text(value, 4), number_text(median(run.tokens_per_second), 3)});
    bars.groups.push_back({.name = run.name, .values = {value}});
  }
  page.table({"run", "data", ">parameters", ">steps", ">loss, last 5 %", "held out", ">figure", ">tokens/s"}, rows);
  if (!comparable) return;
  for (std::size_t i = 1; i + 1 < runs[0].evaluations.back().figures.size(); ++i) {
    const auto& [name, value] = runs[0].evaluations.back().figures[i];
    bars.groups.push_back({.name = spaced(name), .values = {value}});
  }
  bars.title = "Held out: " + spaced(measure);
  bars.value.title = spaced(measure);
  page.chart(to_svg(bars), "Predictors without training are those of " + runs[0].name + ".");
}

void add_curves(io::HtmlPage& page, std::span<const RunRecord> runs, const char* title, const char* unit,
                std::vector<double> RunRecord::* values) {
  LineChart chart{.title = title, .x = {.title = "step"}, .y = {.title = unit}};
  std::vector<double> all;
  for (const RunRecord& run : runs) {
    chart.lines.push_back({.name = run.name, .x = run.step, .y = smoothed(run.*values)});
    all.insert(all.end(), chart.lines.back().y.begin(), chart.lines.back().y.end());
  }
  chart.y.logarithmic = wants_logarithm(all);
  page.chart(to_svg(chart), "Averages over a fiftieth of the steps.");
}

void add_held_out(io::HtmlPage& page, std::span<const RunRecord> runs) {
  LineChart chart{.title = "Held out", .x = {.title = "step"}, .y = {.title = spaced(judged(runs[0]).first)}};
  bool several = false;
  for (const RunRecord& run : runs) {
    if (judged(run).first != judged(runs[0]).first) return;
    Line line{.name = run.name};
    for (const auto& [step, figures] : run.evaluations) {
      line.x.push_back(step);
      line.y.push_back(figures.empty() ? std::nan("") : figures.front().second);
    }
    several = several || line.x.size() > 1;
    chart.lines.push_back(std::move(line));
  }
  if (several) page.chart(to_svg(chart));
}

}  // namespace

io::HtmlPage comparison_page(std::span<const RunRecord> runs) {
  io::HtmlPage page("Comparison of " + std::to_string(runs.size()) + " training runs");
  add_figures(page, runs);
  page.heading("Training");
  add_curves(page, runs, "Training loss", "loss", &RunRecord::loss);
  add_held_out(page, runs);
  add_curves(page, runs, "Gradient norm before clipping", "global L2 norm", &RunRecord::gradient_norm);
  std::vector<NamedRecipe> recipes;
  for (const RunRecord& run : runs) recipes.push_back({run.name, run.recipe.to_config()});
  add_recipe_differences(page, recipes);
  return page;
}

}  // namespace stepwell::cli
