// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/forecast.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/core/config.h"
#include "stepwell/core/context.h"
#include "stepwell/io/json.h"
#include "stepwell/train/series.h"
#include "stepwell/train/trainer.h"

#include "cli/command.h"
#include "cli/figures.h"
#include "cli/table.h"

namespace stepwell::cli {

namespace {

struct ForecastArguments {
  std::string path, csv, column;
  std::int64_t ahead = 10;
  int threads = 0;
  bool json = false;
};

// What to read, and the first value to measure errors at.
struct Series {
  std::vector<double> values;
  std::int64_t first;
};

Series read_series(const ForecastArguments& a, const std::string& folder) {
  const train::Recipe recipe = folder == a.path ? train::Recipe() : train::load_recipe(a.path);
  const std::string csv = a.csv.empty() ? recipe.csv : a.csv, column = a.column.empty() ? recipe.column : a.column;
  if (csv.empty()) fail(ErrorCode::Config, "forecast", a.path + " was not trained on a series: give --csv");
  if (column.empty()) fail(ErrorCode::Config, "forecast", "give --column, the name or number of a column of " + csv);
  std::error_code error;
  const bool own = csv == recipe.csv || (!recipe.csv.empty() && std::filesystem::equivalent(csv, recipe.csv, error));
  Series series{train::read_csv_column(csv, column), 1};
  const auto count = static_cast<double>(series.values.size());
  if (own && column == recipe.column) {
    const auto trained = static_cast<std::int64_t>(count - std::floor(recipe.hold_out_fraction * count));
    series.first = std::max<std::int64_t>(trained, 1);
  }
  return series;
}

void print_json(const train::Forecast& f, std::int64_t count) {
  Config::Object result;
  if (f.values > 0) {
    result = {{"mse", f.mse}, {"persistence", f.persistence}, {"best_exponential_average", f.best_exponential_average}};
  }
  result.emplace_back("values", f.values);
  result.emplace_back("read", count);
  Config::Array next;
  for (const double x : f.next) next.emplace_back(x);
  result.emplace_back("next", std::move(next));
  std::printf("%s\n", io::to_json(Config(std::move(result))).c_str());
}

// Significant digits that show a thousandth of what the series varies by, however far from 0 it lies.
int digits_to_show(const std::vector<double>& values, double deviation) {
  double largest = deviation;
  for (const double x : values) largest = std::max(largest, std::fabs(x));
  return static_cast<int>(std::clamp(std::ceil(std::log10(largest / deviation)) + 3, 6.0, 17.0));
}

int forecast_command(const ForecastArguments& a) {
  Context ctx = Context::parallel(a.threads);
  const std::string folder = train::model_folder(a.path);
  const auto model = models::load_model(folder);
  model->prepare(ctx);
  const Series series = read_series(a, folder);
  const auto count = static_cast<std::int64_t>(series.values.size());
  const train::Forecast f = train::forecast(ctx, *model, series.values, series.first, a.ahead);
  if (a.json) {
    print_json(f, count);
    return kSuccess;
  }
  Table table({">value", ">forecast"});
  const int digits = digits_to_show(f.next, model->scales().front().deviation);
  for (std::size_t i = 0; i < f.next.size(); ++i) {
    table.row({with_commas(count + 1 + static_cast<long long>(i)), significant(f.next[i], digits)});
  }
  table.print(stdout);
  if (f.values == 0) return kSuccess;
  std::printf("%serrors one step ahead, values %s to %s:\n", f.next.empty() ? "" : "\n",
              with_commas(series.first + 1).c_str(), with_commas(count).c_str());
  print_figures({{"mse", f.mse},
                 {"persistence", f.persistence},
                 {"best_exponential_average", f.best_exponential_average},
                 {"values", static_cast<double>(f.values)}},
                false);
  return kSuccess;
}

}  // namespace

Action declare_forecast(Options& options) {
  const auto a = std::make_shared<ForecastArguments>();
  options.argument("run", a->path, true, "Run or model folder of a forecaster");
  options.text("--csv", a->csv, "FILE", "The series, read from its first value on (default: the one trained on)");
  options.text("--column", a->column, "NAME", "Name or number of the column (default: the one trained on)");
  options.integer("--ahead", a->ahead, 0, 1 << 20, "Values to predict after the last one (default: 10)");
  options.threads(a->threads);
  options.json(a->json);
  return [a] { return forecast_command(*a); };
}

}  // namespace stepwell::cli
