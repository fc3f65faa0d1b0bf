// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "stepwell/core/error.h"
#include "stepwell/io/chart.h"

#include "io/chart_parts.h"
#include "io/markup.h"
#include "io/svg.h"
#include "io/ticks.h"

namespace stepwell::io {

namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr double kMarkRow = 15;
constexpr std::size_t kMostPoints = 1200;  // of a line: more than one for each column of pixels

struct Point {
  double x, y, low, high;
  bool shown;
};

// Of a long line, the lowest and the highest of every few points in a row, so that spikes stay.
std::vector<Point> thinned(std::vector<Point> points) {
  if (points.size() <= kMostPoints) return points;
  const std::size_t per_bucket = (2 * points.size() + kMostPoints - 1) / kMostPoints;
  std::vector<Point> kept;
  for (std::size_t begin = 0; begin < points.size(); begin += per_bucket) {
    const auto first = points.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = points.begin() + static_cast<std::ptrdiff_t>(std::min(begin + per_bucket, points.size()));
    const auto [lowest, highest] = std::minmax_element(
        first, last, [](const Point& a, const Point& b) { return a.shown && b.shown ? a.y < b.y : a.shown < b.shown; });
    kept.push_back(*std::min(lowest, highest));
    if (lowest != highest) kept.push_back(*std::max(lowest, highest));
  }
  return kept;
}

void check(const Line& line) {
  const std::size_t n = line.x.size();
  const auto fits = [n](const std::vector<double>& band) { return band.empty() || band.size() == n; };
  STEPWELL_CHECK(line.y.size() == n && fits(line.low) && fits(line.high) && line.low.empty() == line.high.empty(),
                 "chart",
                 "line \"" + line.name + "\" has " + std::to_string(n) + " x, " + std::to_string(line.y.size()) +
                     " y and a band of " + std::to_string(line.low.size()) + " and " +
                     std::to_string(line.high.size()) + ", expected as many of each");
}

Range x_range(const LineChart& chart) {
  Range range(chart.x);
  for (const Line& line : chart.lines) {
    for (const double x : line.x) range.add(x);
  }
  for (const Mark& mark : chart.marks) range.add(mark.x);
  return range;
}

// The plot itself: where it lies, and how values become positions.
class Plot {
 public:
  Plot(Svg& svg, const Box& box, const Scale& x, const Scale& y) : svg_(svg), box_(box), x_(x), y_(y) {}

  void frame() {
    for (std::size_t i = 0; i < y_.ticks.at.size(); ++i) {
      const double y = box_.bottom - y_.place(y_.ticks.at[i]) * box_.height();
      svg_.line(box_.left, y, box_.right, y, "grid");
      svg_.text(box_.left - 6, y + 4, y_.ticks.labels[i], Anchor::End, "tick");
    }
    svg_.line(box_.left, box_.bottom, box_.right, box_.bottom, "axis");
    double free_from = -std::numeric_limits<double>::infinity();  // labels must not run into one another
    for (std::size_t i = 0; i < x_.ticks.at.size(); ++i) {
      const double x = box_.left + x_.place(x_.ticks.at[i]) * box_.width();
      svg_.line(x, box_.bottom, x, box_.bottom + 4, "axis");
      const double half = text_width(x_.ticks.labels[i], kFontSize) / 2;
      if (x - half < free_from) continue;
      const bool beyond = x + half > box_.right + kMargin;  // the drawing's edge
      svg_.text(beyond ? box_.right + kMargin : x, box_.bottom + 17, x_.ticks.labels[i],
                beyond ? Anchor::End : Anchor::Middle, "tick");
      free_from = x + half + 6;
    }
  }

  void mark(const Mark& mark, double row) {
    const double x = box_.left + x_.place(mark.x) * box_.width();
    svg_.line(x, box_.top, x, box_.bottom, "mark");
    svg_.text(x, box_.top - 5 - kMarkRow * row, mark.name, Anchor::Middle, "tick");
  }

  void line(const Line& line, int colour) {
    std::vector<Point> points;
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      const bool band = !line.low.empty() && y_.shows(line.low[i]) && y_.shows(line.high[i]);
      points.push_back({line.x[i], line.y[i], band ? line.low[i] : line.y[i], band ? line.high[i] : line.y[i],
                        x_.shows(line.x[i]) && y_.shows(line.y[i])});
    }
    points = thinned(std::move(points));
    for (auto begin = points.begin(); begin != points.end();) {
      begin = std::find_if(begin, points.end(), [](const Point& p) { return p.shown; });
      const auto end = std::find_if(begin, points.end(), [](const Point& p) { return !p.shown; });
      if (begin != end) run(begin, end, !line.low.empty(), colour, line.stroke);
      begin = end;
    }
  }

 private:
  using Iterator = std::vector<Point>::const_iterator;

  std::pair<double, double> place(double x, double y) const {
    return {box_.left + x_.place(x) * box_.width(), box_.bottom - y_.place(y) * box_.height()};
  }

  // A part of a line without gaps.
  void run(Iterator begin, Iterator end, bool band, int colour, Stroke stroke) {
    Points middle, around;
    for (auto p = begin; p != end; ++p) middle.push_back(place(p->x, p->y));
    if (band && middle.size() > 1) {
      for (auto p = begin; p != end; ++p) around.push_back(place(p->x, p->high));
      for (auto p = end; p != begin;) {
        --p;
        around.push_back(place(p->x, p->low));
      }
      svg_.area(around, colour);
    }
    if (middle.size() == 1) svg_.dot(middle[0].first, middle[0].second, colour);
    else svg_.polyline(middle, colour, stroke);
  }

  Svg& svg_;
  Box box_;
  const Scale& x_;
  const Scale& y_;
};

// The row above the plot that each mark's name stands in, so that none runs into another.
std::vector<int> mark_rows(const std::vector<Mark>& marks, const Scale& x, double width) {
  std::vector<int> rows;
  std::vector<std::vector<std::pair<double, double>>> names;  // by row: from where to where each reaches
  for (const Mark& mark : marks) {
    const double middle = x.place(mark.x) * width, half = text_width(mark.name, kFontSize) / 2 + 4;
    const auto free = [&](const auto& row) {
      return std::ranges::none_of(
          row, [&](const auto& other) { return middle - half < other.second && other.first < middle + half; });
    };
    std::size_t row = 0;
    while (row < names.size() && !free(names[row])) ++row;
    if (row == names.size()) names.emplace_back();
    names[row].emplace_back(middle - half, middle + half);
    rows.push_back(static_cast<int>(row));
  }
  return rows;
}

struct PanelStyle {
  int x_ticks, y_ticks;
  bool widen;  // the y axis to ticks at both ends
};

// Draws the axes, lines and marks of a chart into a box, which is narrowed to make room for labels.
void draw_panel(Svg& svg, const LineChart& chart, Box box, const Range& y, const PanelStyle& style) {
  const Scale y_scale = y.scale(style.y_ticks, style.widen);
  const Scale x_scale = x_range(chart).scale(style.x_ticks, false);
  double widest = 0;
  for (const std::string& label : y_scale.ticks.labels) widest = std::max(widest, text_width(label, kFontSize));
  box.left += widest + 8;
  std::vector<Mark> marks;
  bool named = false;
  for (const Mark& mark : chart.marks) {
    if (!x_scale.shows(mark.x)) continue;
    marks.push_back(mark);
    named = named || !mark.name.empty();
  }
  const std::vector<int> rows = mark_rows(marks, x_scale, box.width());
  if (named) box.top += kMarkRow * (1 + *std::ranges::max_element(rows));
  Plot plot(svg, box, x_scale, y_scale);
  plot.frame();
  bool anything = false;
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    const Line& line = chart.lines[i];
    plot.line(line, static_cast<int>(i % kColours));
    for (std::size_t k = 0; k < line.x.size(); ++k) {
      anything = anything || (x_scale.shows(line.x[k]) && y_scale.shows(line.y[k]));
    }
  }
  for (std::size_t i = 0; i < marks.size(); ++i) plot.mark(marks[i], rows[i]);
  if (!anything) {
    svg.text((box.left + box.right) / 2, (box.top + box.bottom) / 2, "nothing to show", Anchor::Middle, "tick");
  }
}

std::vector<LegendEntry> legend_of(const std::vector<Line>& lines) {
  std::vector<LegendEntry> entries;
  if (lines.size() < 2) return entries;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    entries.push_back({lines[i].name, static_cast<int>(i % kColours), true, lines[i].stroke});
  }
  return entries;
}

}  // namespace

Range y_range(const LineChart& chart) {
  Range range(chart.y);
  for (const Line& line : chart.lines) {
    check(line);
    for (const auto* values : {&line.y, &line.low, &line.high}) {
      for (const double y : *values) range.add(y);
    }
  }
  return range;
}

std::string to_svg(const LineChart& chart) {
  const Range y = y_range(chart);
  const double width = std::max(chart.width, 200);
  const Head head(chart.title, legend_of(chart.lines), width);
  const double top = head.height() + (chart.y.title.empty() ? 12 : 26);
  const double bottom = chart.x.title.empty() ? 26 : 46;
  const double height = std::max<double>(chart.height, top + bottom + 60);
  Svg svg(width, height, chart.title);
  head.draw(svg);
  svg.text(kMargin, head.height() + 14, chart.y.title, Anchor::Start, "tick");
  svg.text(width - kMargin, height - 8, chart.x.title, Anchor::End, "tick");
  draw_panel(svg, chart, {kMargin, top, width - kMargin - 6, height - bottom}, y, {8, 6, true});
  return std::move(svg).finish();
}

std::string to_svg(const SmallMultiples& chart) {
  const double width = std::max(chart.width, 200), panel_height = std::max(chart.panel_height, 80);
  const int columns = std::max(chart.columns, 1);
  const auto rows = (static_cast<int>(chart.panels.size()) + columns - 1) / columns;
  const Head head(chart.title, chart.panels.empty() ? std::vector<LegendEntry>() : legend_of(chart.panels[0].lines),
                  width);
  const double panel_width = (width - 2 * kMargin) / columns;
  Svg svg(width, head.height() + rows * panel_height + kMargin, chart.title);
  head.draw(svg);
  Range all(chart.panels.empty() ? Axis() : chart.panels[0].y);
  for (const LineChart& panel : chart.panels) all.add(y_range(panel));
  for (std::size_t i = 0; i < chart.panels.size(); ++i) {
    const LineChart& panel = chart.panels[i];
    const double left = kMargin + static_cast<double>(static_cast<int>(i) % columns) * panel_width;
    const double top = head.height() + static_cast<double>(static_cast<int>(i) / columns) * panel_height;
    svg.text(left, top + 16, fitted(panel.title, kFontSize, panel_width - 12), Anchor::Start, "name");
    Range y = chart.same_scale ? all : y_range(panel);
    y.pad(0.05);
    const Box box{left, top + 26, left + panel_width - 14, top + panel_height - 24};
    draw_panel(svg, panel, box, y, {std::clamp(static_cast<int>(panel_width / 70), 3, 8), 5, false});
  }
  return std::move(svg).finish();
}

}  // namespace stepwell::io
