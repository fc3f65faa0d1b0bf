// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/io/chart.h"
#include "stepwell/io/json.h"

#include "cli/progress.h"
#include "cli/report/pages.h"
#include "cli/report/series.h"
#include "cli/table.h"

namespace stepwell::cli {

namespace {

using io::Line;
using io::LineChart;
using io::number_text;

// Every value of a recipe by its dotted name.
void flatten(const Config& value, const std::string& name, std::map<std::string, std::string>& out) {
  if (!value.is_object()) {
    out[name] = value.is_string() ? value.as_string("recipe") : io::to_json(value, 0);
    return;
  }
  for (const auto& [key, member] : value.as_object("recipe")) {
    flatten(member, name.empty() ? key : name + "." + key, out);
  }
}

void add_differences(io::HtmlPage& page, std::span<const RunRecord> runs) {
  std::vector<std::map<std::string, std::string>> recipes;
  std::set<std::string> keys;
  for (const RunRecord& run : runs) {
    flatten(run.recipe.to_config(), "", recipes.emplace_back());
    for (const auto& [key, value] : recipes.back()) keys.insert(key);
  }
  std::vector<std::string> titles = {""};
  for (const RunRecord& run : runs) titles.push_back(run.name);
  std::vector<std::vector<std::string>> rows;
  const auto mixer = [](const auto& recipe) { return recipe.contains("model.mixer") ? recipe.at("model.mixer") : ""; };
  const bool one_mixer = std::ranges::all_of(recipes, [&](const auto& r) { return mixer(r) == mixer(recipes[0]); });
  for (const std::string& key : keys) {
    if (!one_mixer && key.starts_with("model.mixer_options")) continue;  // other mixers have other options
    std::vector<std::string> row = {key};
    for (const auto& recipe : recipes) row.push_back(recipe.contains(key) ? recipe.at(key) : "–");
    if (std::any_of(row.begin() + 2, row.end(), [&](const std::string& cell) { return cell != row[1]; })) {
      rows.push_back(std::move(row));
    }
  }
  page.heading("What differs in the recipes");
  if (rows.empty()) page.paragraph("Nothing.");
  else page.table(titles, rows);
}

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
  add_differences(page, runs);
  return page;
}

}  // namespace stepwell::cli
