// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/core/error.h"
#include "stepwell/io/chart.h"
#include "stepwell/io/json.h"

#include "bench/memory/memory_bench.h"
#include "cli/report/pages.h"
#include "cli/report/series.h"

namespace stepwell::cli {

namespace {

using io::number_text;

[[noreturn]] void malformed(const std::string& path) {
  fail(ErrorCode::File, "report", path + " is not what stepwell bench --memory --json prints");
}

// What `stepwell bench --memory --json` prints, back as tables.
std::vector<bench::MemoryTable> read_tables(const std::string& path) {
  const Config file = io::read_json(path);
  std::vector<bench::MemoryTable> tables;
  if (!file.is_array()) malformed(path);
  for (const Config& section : file.as_array(path)) {
    const Config *title = section.find("title"), *rows = section.find("rows");
    if (!title || !title->is_string() || !rows || !rows->is_array()) malformed(path);
    bench::MemoryTable& table = tables.emplace_back(bench::MemoryTable{title->as_string(path), {}, {}});
    for (const Config& cells : rows->as_array(path)) {
      if (!cells.is_object() || cells.as_object(path).empty()) malformed(path);
      std::vector<std::string> columns;
      bench::MemoryRow row;
      for (const auto& [column, value] : cells.as_object(path)) {
        if (columns.empty() != value.is_string() || (!value.is_string() && !value.is_array())) malformed(path);
        columns.push_back(column);
        if (value.is_string()) {
          row.name = value.as_string(path);
          continue;
        }
        std::vector<double>& figures = row.figures.emplace_back();
        for (const Config& x : value.as_array(path))
          figures.push_back(x.is_number() ? x.as_double(path) : std::nan(""));
      }
      if (!table.rows.empty() && columns != table.columns) malformed(path);
      table.columns = columns;
      table.rows.push_back(std::move(row));
    }
  }
  return tables;
}

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// Mean, and the lowest and highest of the seeds.
struct Spread {
  double mean, low, high;
};
Spread spread_of(const std::vector<double>& figures) {
  const double mean = bench::mean_and_deviation(figures).first;
  if (figures.empty() || std::isnan(mean)) return {std::nan(""), std::nan(""), std::nan("")};
  return {mean, *std::ranges::min_element(figures), *std::ranges::max_element(figures)};
}

void add_table(io::HtmlPage& page, const bench::MemoryTable& table) {
  std::vector<std::string> titles = {table.columns[0]};
  for (std::size_t i = 1; i < table.columns.size(); ++i) titles.push_back(">" + table.columns[i]);
  std::vector<std::vector<std::string>> rows;
  for (const bench::MemoryRow& row : table.rows) {
    std::vector<std::string>& cells = rows.emplace_back(1, row.name);
    for (const std::vector<double>& figures : row.figures) {
      const auto [mean, deviation] = bench::mean_and_deviation(figures);
      cells.push_back(number_text(mean) + (deviation > 0 ? " ± " + number_text(deviation, 2) : ""));
    }
  }
  page.table(titles, rows);
}

// Rows whose names are numbers are points of curves. A column "imitation: ms" is a curve "imitation" in the chart of
// ms; columns without a unit share one chart.
void add_curves(io::HtmlPage& page, const bench::MemoryTable& table) {
  std::map<std::string, io::LineChart> charts;
  std::vector<std::string> order;
  for (std::size_t i = 1; i < table.columns.size(); ++i) {
    const std::size_t colon = table.columns[i].rfind(": ");
    const std::string unit = colon == std::string::npos ? "" : table.columns[i].substr(colon + 2);
    if (!charts.contains(unit)) order.push_back(unit);
    io::LineChart& chart = charts[unit];
    chart.title = table.title;
    chart.y.title = unit;
    chart.x.title = table.columns[0];
    io::Line& line = chart.lines.emplace_back();
    line.name = table.columns[i].substr(0, colon);
    for (const bench::MemoryRow& row : table.rows) {
      const Spread spread = spread_of(row.figures[i - 1]);
      line.x.push_back(*number_of(row.name));
      line.y.push_back(spread.mean);
      line.low.push_back(spread.low);
      line.high.push_back(spread.high);
    }
  }
  for (const std::string& unit : order) {
    io::LineChart& chart = charts[unit];
    std::vector<double> all;
    for (const io::Line& line : chart.lines) all.insert(all.end(), line.y.begin(), line.y.end());
    chart.x.logarithmic = wants_logarithm(chart.lines[0].x);
    chart.y.logarithmic = wants_logarithm(all);
    if (!chart.y.logarithmic) chart.y.low = 0;
    page.chart(to_svg(chart), "Means of the seeds; bands from the lowest to the highest of them.");
  }
}

// Rows with figures at multiples of the trained length are groups of bars.
void add_bars(io::HtmlPage& page, const bench::MemoryTable& table) {
  io::BarChart chart;
  chart.title = table.title;
  std::vector<std::size_t> shown;
  for (std::size_t i = 1; i < table.columns.size(); ++i) {
    const std::string& column = table.columns[i];
    if (column != "T" && !column.ends_with(", T") && column != "2T" && column != "4T") continue;
    shown.push_back(i - 1);
    chart.series.push_back(column);
  }
  if (shown.empty()) return;
  for (const bench::MemoryRow& row : table.rows) {
    io::BarGroup group{.name = row.name};
    for (const std::size_t i : shown) {
      const Spread spread = spread_of(row.figures[i]);
      group.values.push_back(spread.mean);
      group.low.push_back(spread.low);
      group.high.push_back(spread.high);
    }
    chart.groups.push_back(std::move(group));
  }
  page.chart(to_svg(chart), "Means of the seeds; whiskers from the lowest to the highest of them.");
}

}  // namespace

io::HtmlPage bench_page(const std::string& path) {
  io::HtmlPage page("Memories by imitation and through time");
  for (const bench::MemoryTable& table : read_tables(path)) {
    if (table.rows.empty()) continue;
    page.heading(table.title);
    add_table(page, table);
    const bool curves =
        std::ranges::all_of(table.rows, [](const auto& row) { return number_of(row.name).has_value(); });
    if (curves) add_curves(page, table);
    else add_bars(page, table);
  }
  return page;
}

}  // namespace stepwell::cli
