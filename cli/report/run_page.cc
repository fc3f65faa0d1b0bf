// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/autograd/variable.h"
#include "stepwell/core/context.h"
#include "stepwell/core/error.h"
#include "stepwell/io/chart.h"
#include "stepwell/io/json.h"
#include "stepwell/models/model.h"
#include "stepwell/train/forecast.h"
#include "stepwell/train/sequence_task.h"
#include "stepwell/train/series.h"
#include "stepwell/train/trainer.h"

#include "cli/progress.h"
#include "cli/report/pages.h"
#include "cli/report/series.h"
#include "cli/table.h"

namespace stepwell::cli {

namespace {

using Rows = std::vector<std::vector<std::string>>;
using io::Line;
using io::LineChart;
using io::number_text;
using io::Stroke;

std::string percent(double part) { return decimal(100 * part, 1) + " %"; }

void add_figures(io::HtmlPage& page, const RunRecord& run) {
  if (run.evaluations.empty()) return;
  const auto& [step, figures] = run.evaluations.back();
  if (figures.size() < 3) return;
  const auto& [measure, model] = figures.front();
  const auto& [unit, count] = figures.back();
  Rows rows;
  io::BarChart bars;
  bars.title = "Held out: " + spaced(measure);
  bars.value.title = spaced(measure);
  for (std::size_t i = 0; i + 1 < figures.size(); ++i) {
    const std::string name = i == 0 ? "model" : spaced(figures[i].first);
    rows.push_back({name, number_text(figures[i].second, 4), decimal(figures[i].second / figures[1].second, 3)});
    bars.groups.push_back({.name = name, .values = {figures[i].second}});
  }
  page.heading("Held-out figures");
  page.table({"", ">" + spaced(measure), ">of " + spaced(figures[1].first)}, rows);
  page.paragraph("Measured on " + with_commas(static_cast<long long>(count)) + " " + spaced(unit) + " after step " +
                 with_commas(static_cast<long long>(step)) + ".");
  page.chart(to_svg(bars));
}

void add_summary(io::HtmlPage& page, const RunRecord& run) {
  const train::Recipe& recipe = run.recipe;
  const double clip = recipe.adam.clip_norm;
  const auto clipped = std::ranges::count_if(run.gradient_norm, [&](double norm) { return norm > clip; });
  const std::int64_t tokens = recipe.length * recipe.batch * recipe.accumulate;
  double seconds = 0;
  for (const double rate : run.tokens_per_second) {
    if (rate > 0) seconds += static_cast<double>(tokens) / rate;
  }
  Rows rows = {{"data", data_of(recipe)}, {"model", model_of(recipe)}};
  if (run.parameters > 0) rows.push_back({"parameters", with_commas(run.parameters)});
  rows.push_back({"steps", with_commas(static_cast<long long>(run.step.size())) + " of " + with_commas(recipe.steps)});
  rows.push_back({"tokens per step", with_commas(tokens)});
  if (!run.step.empty()) {
    rows.push_back({"loss, mean of the last 5 % of steps", number_text(mean_of_last(run.loss), 4)});
    rows.push_back({"tokens per second, median", number_text(median(run.tokens_per_second), 3)});
    rows.push_back({"time in steps", duration(seconds)});
    if (clip > 0) {
      rows.push_back({"steps with a clipped gradient",
                      percent(static_cast<double>(clipped) / static_cast<double>(run.step.size()))});
    }
    rows.push_back({"steps skipped, not finite", with_commas(run.skipped)});
  }
  page.table({"", ""}, rows);
}

void add_curves(io::HtmlPage& page, const RunRecord& run) {
  if (run.step.empty()) return;
  page.heading("Training");
  LineChart loss{.title = "Training loss", .x = {.title = "step"}, .y = {.title = "loss"}};
  loss.y.logarithmic = wants_logarithm(run.loss);
  loss.lines = {{.name = "each step", .x = run.step, .y = run.loss, .stroke = Stroke::Faint},
                {.name = "average", .x = run.step, .y = smoothed(run.loss)}};
  page.chart(to_svg(loss));

  if (run.evaluations.size() > 1) {
    const auto& last = run.evaluations.back().figures;
    LineChart held_out{.title = "Held out", .x = {.title = "step"}, .y = {.title = spaced(last.front().first)}};
    for (std::size_t i = 0; i + 1 < last.size(); ++i) {
      Line line{.name = i == 0 ? "model" : spaced(last[i].first), .stroke = i == 0 ? Stroke::Solid : Stroke::Dashed};
      for (const auto& [step, figures] : run.evaluations) {
        if (i >= figures.size()) continue;
        line.x.push_back(step);
        line.y.push_back(figures[i].second);
      }
      held_out.lines.push_back(std::move(line));
    }
    page.chart(to_svg(held_out));
  }

  LineChart norm{.title = "Gradient norm before clipping", .x = {.title = "step"}, .y = {.title = "global L2 norm"}};
  norm.y.logarithmic = wants_logarithm(run.gradient_norm);
  norm.lines = {{.name = "each step", .x = run.step, .y = run.gradient_norm, .stroke = Stroke::Faint},
                {.name = "average", .x = run.step, .y = smoothed(run.gradient_norm)}};
  const double clip = run.recipe.adam.clip_norm;
  if (clip > 0) {
    norm.lines.push_back({.name = "clipped above",
                          .x = {run.step.front(), run.step.back()},
                          .y = {clip, clip},
                          .stroke = Stroke::Dashed});
  }
  page.chart(to_svg(norm));

  io::SmallMultiples rates{.columns = 2, .same_scale = false, .panel_height = 190};
  rates.panels = {{.title = "Learning rate", .lines = {{.x = run.step, .y = run.lr}}},
                  {.title = "Tokens per second",
                   .lines = {{.x = run.step, .y = run.tokens_per_second, .stroke = Stroke::Faint},
                             {.x = run.step, .y = smoothed(run.tokens_per_second)}}}};
  page.chart(to_svg(rates));
}

// Values that were held out, and what the newest checkpoint says before it sees them.
struct Shown {
  std::vector<double> at, actual, predicted;
};

Shown show_series(const train::Recipe& recipe, const models::Model& model, Context& ctx) {
  constexpr std::size_t kMost = 300;
  const std::vector<double> values = train::read_csv_column(recipe.csv, recipe.column);
  const std::size_t first = values.size() - std::min(values.size() - 1, kMost);
  const train::Forecast f = train::forecast(ctx, model, values, static_cast<std::int64_t>(first));
  Shown shown{{}, {values.begin() + static_cast<std::ptrdiff_t>(first), values.end()}, f.predicted};
  for (std::size_t i = first; i < values.size(); ++i) shown.at.push_back(static_cast<double>(i + 1));
  return shown;
}

Shown show_task(const train::Recipe& recipe, const models::Model& model, Context& ctx) {
  const auto task = train::make_sequence_task(recipe.task, recipe.task_options);
  const train::SequenceBatch batch =
      task->sample(recipe.seed, "held-out", 0, 1, std::min<std::int64_t>(recipe.length, 300));
  const NoGrad no_grad;
  models::States states;
  const Tensor y = model.forward(ctx, batch.x, states).value();
  Shown shown;
  const std::int64_t out = batch.target.size(2);
  for (std::int64_t t = 0; t < batch.target.size(1); ++t) {
    if (!batch.asked.data<bool>()[t]) continue;
    shown.at.push_back(static_cast<double>(t + 1));
    shown.actual.push_back(batch.target.at(t * out));
    shown.predicted.push_back(y.at(t * out));
  }
  return shown;
}

void add_prediction(io::HtmlPage& page, const RunRecord& run) {
  const train::Recipe& recipe = run.recipe;
  if (run.parameters == 0 || !recipe.text.empty()) return;
  Context ctx = Context::parallel();
  const auto model = models::load_model(train::model_folder(run.path));
  model->prepare(ctx);
  const bool series = !recipe.csv.empty();
  const Shown shown = series ? show_series(recipe, *model, ctx) : show_task(recipe, *model, ctx);
  if (shown.at.size() < 2) return;
  LineChart chart{.title = series ? "The last values of the series, and their predictions"
                                  : "The first held-out sequence: what is asked for, and the model's output"};
  chart.x.title = series ? "value" : "token";
  chart.y.title = series ? recipe.column : "first entry";
  chart.lines = {{.name = "actual", .x = shown.at, .y = shown.actual},
                 {.name = "predicted from all before", .x = shown.at, .y = shown.predicted, .stroke = Stroke::Dashed}};
  page.heading("Prediction");
  page.chart(to_svg(chart));
}

}  // namespace

io::HtmlPage run_page(const RunRecord& run) {
  io::HtmlPage page("Training run " + run.name);
  add_summary(page, run);
  add_figures(page, run);
  add_curves(page, run);
  add_prediction(page, run);
  page.heading("Recipe");
  page.folded("The recipe as run, complete", io::to_json(run.recipe.to_config()));
  return page;
}

}  // namespace stepwell::cli
