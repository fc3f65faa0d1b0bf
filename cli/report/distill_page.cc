// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/io/chart.h"
#include "stepwell/io/json.h"

#include "cli/progress.h"
#include "cli/report/pages.h"
#include "cli/report/recipe_differences.h"
#include "cli/report/series.h"
#include "cli/table.h"

namespace stepwell::cli {

namespace {

using Table = std::vector<std::vector<std::string>>;
using io::Line;
using io::LineChart;
using io::number_text;
using io::Stroke;

constexpr std::size_t kPanels = 8;

std::string whole(double x) { return number_text(std::round(x), 9); }

std::string steps_of(const DistillRecord::Drift& d) { return whole(d.first) + "–" + whole(d.last); }

std::string measure_name(const DistillRecord& run) {
  return run.errors.empty() || run.errors[0].measure == "mse" ? "mean square error" : "share of right signs";
}

double figure(const DistillRecord::Errors& errors, const std::string& name) {
  for (const auto& [key, value] : errors.figures) {
    if (key == name) return value;
  }
  return std::nan("");
}

void add_summary(io::HtmlPage& page, const DistillRecord& run) {
  Table rows = {{"task", run.task + ", sequences of " + whole(run.length) + " tokens"},
                {"mode", run.mode},
                {"cell", run.cell + ", a memory of " + whole(run.memory_width) + " numbers"},
                {"parameters of the cell", whole(run.parameters)},
                {"training steps", whole(run.steps)}};
  if (std::isfinite(run.variance)) rows.push_back({"variance of the teacher's memory", number_text(run.variance)});
  rows.push_back({"largest stretch of a step (contraction below 1)", number_text(run.contraction)});
  page.table({"", ""}, rows);
}

// The student, the teacher and predictors without training, by length.
void add_errors(io::HtmlPage& page, const DistillRecord& run) {
  if (run.errors.empty()) return;
  std::vector<std::string> titles = {"held out"};
  io::BarChart bars;
  bars.title = "Held out, by multiples of the trained length";
  bars.value.title = measure_name(run);
  for (const DistillRecord::Errors& errors : run.errors) {
    titles.push_back(">" + whole(errors.times) + "×, " + whole(errors.length) + " tokens");
    bars.series.push_back(whole(errors.times) + "×");
  }
  Table rows;
  for (const auto& [name, unused] : run.errors[0].figures) {
    std::vector<std::string>& row = rows.emplace_back(1, name == "student"                ? "cell"
                                                         : name == "student_before_refit" ? "cell before the refit"
                                                                                          : spaced(name));
    io::BarGroup& group = bars.groups.emplace_back();
    group.name = row[0];
    for (const DistillRecord::Errors& errors : run.errors) {
      row.push_back(number_text(figure(errors, name), 4));
      group.values.push_back(figure(errors, name));
    }
  }
  page.heading("Held-out figures: " + measure_name(run));
  page.table(titles, rows);
  page.chart(to_svg(bars), "Over " + whole(run.errors[0].sequences) + " sequences.");
}

std::vector<double> column(const DistillRecord::Rows& rows, std::size_t entry) {
  std::vector<double> values;
  for (const auto& row : rows) values.push_back(entry < row.size() ? row[entry] : std::nan(""));
  return values;
}

std::vector<double> tokens(std::size_t count) {
  std::vector<double> x(count);
  std::iota(x.begin(), x.end(), 1);
  return x;
}

double variance_of(const std::vector<double>& values) {
  double mean = 0, sum = 0;
  for (const double x : values) mean += x / static_cast<double>(values.size());
  for (const double x : values) sum += (x - mean) * (x - mean);
  return sum;
}

Line curve(std::string name, const DistillRecord::Rows& rows, std::size_t entry, Stroke stroke = Stroke::Solid) {
  return {.name = std::move(name), .x = tokens(rows.size()), .y = column(rows, entry), .stroke = stroke};
}

void add_trajectories(io::HtmlPage& page, const DistillRecord& run) {
  const DistillRecord::Rows& leading = run.teacher.empty() ? run.student : run.teacher;
  if (leading.empty()) return;
  std::vector<std::size_t> order(leading[0].size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<double> movement;
  for (const std::size_t entry : order) movement.push_back(variance_of(column(leading, entry)));
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return movement[a] != movement[b] ? movement[a] > movement[b] : a < b;
  });
  order.resize(std::min(order.size(), kPanels));
  std::ranges::sort(order);
  io::SmallMultiples memories{.title = "Memories along one held-out sequence", .columns = 2};
  for (const std::size_t entry : order) {
    LineChart panel{.title = "entry " + std::to_string(entry + 1)};
    if (!run.teacher.empty()) panel.lines.push_back(curve("teacher", run.teacher, entry));
    panel.lines.push_back(
        curve("cell, on its own memories", run.student, entry, run.teacher.empty() ? Stroke::Solid : Stroke::Dashed));
    if (run.length < static_cast<double>(leading.size())) panel.marks = {{run.length, ""}};
    memories.panels.push_back(std::move(panel));
  }
  page.heading("Memories");
  page.chart(to_svg(memories), "The " + std::to_string(order.size()) + " entries that move most, of " +
                                   std::to_string(leading[0].size()) +
                                   ", token by token. The dotted rule is the trained length.");
}

void add_prediction(io::HtmlPage& page, const DistillRecord& run) {
  const std::vector<double> target = column(run.target, 0);
  if (std::ranges::count_if(target, [](double x) { return std::isfinite(x); }) < 2) return;
  LineChart chart{.title = "Prediction along the same sequence, first output", .x = {.title = "token"}};
  chart.lines = {curve("what comes", run.target, 0, Stroke::Faint), curve("cell", run.student_prediction, 0)};
  if (!run.teacher_prediction.empty())
    chart.lines.push_back(curve("teacher", run.teacher_prediction, 0, Stroke::Dashed));
  if (run.length < static_cast<double>(target.size())) chart.marks = {{run.length, "trained length"}};
  page.chart(to_svg(chart));
}

// The drift by bucket without its last two entries, which sum up.
Line drift_line(const DistillRecord& run, double DistillRecord::Drift::* value, std::string name) {
  Line line{.name = std::move(name)};
  for (std::size_t i = 0; i + 2 < run.drift.size(); ++i) {
    line.x.push_back((run.drift[i].first + run.drift[i].last) / 2);
    line.y.push_back(run.drift[i].*value);
  }
  return line;
}

double drift_ratio(const DistillRecord& run) {
  if (run.drift.size() < 2) return std::nan("");
  return run.drift.back().drift / run.drift[run.drift.size() - 2].drift;
}

void add_drift(io::HtmlPage& page, const DistillRecord& run) {
  if (run.drift.empty()) return;
  Table rows;
  for (std::size_t i = 0; i < run.drift.size(); ++i) {
    const DistillRecord::Drift& d = run.drift[i];
    const std::size_t left = run.drift.size() - i;
    const std::string name = left == 2 ? "first window, " : left == 1 ? "the last, " : "";
    rows.push_back({name + steps_of(d), number_text(d.drift), number_text(d.over_variance), number_text(d.student, 4),
                    number_text(d.teacher, 4)});
  }
  page.heading("Drift");
  page.paragraph(
      "How far the cell's memory, running on its own, is from the teacher's: mean square difference, also as "
      "a part of the variance of the teacher's memory. Over the last steps it is " +
      number_text(drift_ratio(run)) +
      " times that of the first window. A teacher forgets what has left its window; where the cell keeps it, drift is "
      "no "
      "fault.");
  LineChart chart{
      .title = "Drift along held-out sequences", .x = {.title = "step"}, .y = {.title = "drift / variance"}};
  chart.lines = {drift_line(run, &DistillRecord::Drift::over_variance, "drift")};
  chart.y.logarithmic = wants_logarithm(chart.lines[0].y);
  if (!chart.y.logarithmic) chart.y.low = 0;
  chart.marks = {{run.length, "trained length"}};
  page.chart(to_svg(chart));
  page.table({"steps", ">drift", ">of the variance", ">cell's error", ">teacher's error"}, rows);
}

void add_rounds(io::HtmlPage& page, const DistillRecord& run) {
  if (run.rounds.empty()) return;
  LineChart chart{
      .title = "Drift on validation sequences, after each round", .x = {.title = "round"}, .y = {.title = "drift"}};
  Line every{.name = "every round"}, best{.name = "the least so far"};
  const auto last_best =
      std::ranges::find(run.rounds.rbegin(), run.rounds.rend(), true, &DistillRecord::Round::accepted);
  Table rows;
  for (const DistillRecord::Round& r : run.rounds) {
    every.x.push_back(r.round);
    every.y.push_back(r.drift);
    if (r.accepted) {  // dots
      best.x.insert(best.x.end(), 2, r.round);
      best.y.insert(best.y.end(), {r.drift, std::nan("")});
    }
    const bool after = last_best != run.rounds.rend() && r.round > last_best->round;
    rows.push_back({whole(r.round), number_text(r.drift), number_text(r.memory_loss),
                    r.accepted ? "accepted: the least so far"
                    : after    ? "rolled back"
                               : "no progress",
                    whole(r.visited), whole(r.restarts), whole(r.skipped)});
  }
  chart.y.logarithmic = wants_logarithm(every.y);
  chart.lines = {std::move(every), std::move(best)};
  page.heading("Rounds of imitation");
  page.chart(to_svg(chart), "Round 0 is the cell before them. What comes after the last of the least is rolled back.");
  page.table({"round", ">drift", ">loss of its steps", "", ">transitions", ">restarts", ">skipped steps"}, rows);
}

void add_losses(io::HtmlPage& page, const DistillRecord& run) {
  if (run.phases.empty()) return;
  page.heading("Losses");
  io::SmallMultiples parts{
      .title = "Losses and what they are made of", .columns = 3, .same_scale = false, .panel_height = 180};
  for (const DistillRecord::Phase& phase : run.phases) {
    for (const auto& [name, values] : phase.parts) {
      LineChart panel{.title = phase.name + ": " + spaced(name)};
      panel.y.logarithmic = wants_logarithm(values);
      panel.lines = {{.name = "each step", .x = phase.step, .y = values, .stroke = Stroke::Faint},
                     {.name = "average", .x = phase.step, .y = smoothed(values)}};
      parts.panels.push_back(std::move(panel));
    }
  }
  page.chart(to_svg(parts), "By training step. dec: decoding, dyn: dynamics, unif: uniformity.");
}

// The student's figure of the comparison's runs by length, and its drift.
void add_comparison(io::HtmlPage& page, std::span<const DistillRecord> runs) {
  Table rows;
  io::BarChart bars;
  bars.title = "Cells, held out, by multiples of the trained length";
  bars.value.title = measure_name(runs[0]);
  std::vector<std::string> titles = {"run", "task", "mode", "cell", ">memory", ">parameters"};
  for (const DistillRecord::Errors& errors : runs[0].errors) {
    titles.push_back(">" + whole(errors.times) + "×");
    io::BarGroup group{.name = whole(errors.times) + "×"};
    for (const DistillRecord& run : runs) {
      const auto found = std::ranges::find(run.errors, errors.times, &DistillRecord::Errors::times);
      group.values.push_back(found == run.errors.end() ? std::nan("") : figure(*found, "student"));
    }
    bars.groups.push_back(std::move(group));
  }
  titles.push_back(">drift, last / first");
  bool comparable = true;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const DistillRecord& run = runs[i];
    comparable = comparable && run.answer == runs[0].answer;
    bars.series.push_back(run.name);
    rows.push_back({run.name, run.task, run.mode, run.cell, whole(run.memory_width), whole(run.parameters)});
    for (const io::BarGroup& group : bars.groups) rows.back().push_back(number_text(group.values[i], 4));
    rows.back().push_back(number_text(drift_ratio(run)));
  }
  page.table(titles, rows);
  if (comparable && !bars.groups.empty()) page.chart(to_svg(bars));
}

}  // namespace

io::HtmlPage distill_page(const DistillRecord& run) {
  io::HtmlPage page("Distillation " + run.name);
  add_summary(page, run);
  add_errors(page, run);
  add_trajectories(page, run);
  add_prediction(page, run);
  add_drift(page, run);
  add_rounds(page, run);
  add_losses(page, run);
  page.heading("Recipe");
  page.folded("The recipe as run, complete", io::to_json(run.recipe));
  return page;
}

io::HtmlPage distill_comparison_page(std::span<const DistillRecord> runs) {
  io::HtmlPage page("Comparison of " + std::to_string(runs.size()) + " distillations");
  add_comparison(page, runs);
  LineChart drift{
      .title = "Drift along held-out sequences", .x = {.title = "step"}, .y = {.title = "drift / variance"}};
  std::vector<double> all;
  for (const DistillRecord& run : runs) {
    if (run.drift.size() < 3) continue;  // back-propagation through time: there is no teacher
    drift.lines.push_back(drift_line(run, &DistillRecord::Drift::over_variance, run.name));
    all.insert(all.end(), drift.lines.back().y.begin(), drift.lines.back().y.end());
  }
  drift.y.logarithmic = wants_logarithm(all);
  if (drift.lines.size() == 1) drift.title = "Drift of " + drift.lines[0].name + " along held-out sequences";
  if (!drift.lines.empty()) page.chart(to_svg(drift));
  std::vector<NamedRecipe> recipes;
  for (const DistillRecord& run : runs) recipes.push_back({run.name, run.recipe});
  add_recipe_differences(page, recipes);
  return page;
}

}  // namespace stepwell::cli
