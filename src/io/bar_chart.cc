// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "stepwell/io/chart.h"

#include "io/chart_parts.h"
#include "io/markup.h"
#include "io/svg.h"

namespace stepwell::io {

namespace {

constexpr double kBar = 14, kGroupGap = 10;

double entry(const std::vector<double>& values, std::size_t i) { return i < values.size() ? values[i] : std::nan(""); }

Range value_range(const BarChart& chart) {
  Range range(chart.value);
  if (!chart.value.logarithmic) range.add(0);
  for (const BarGroup& group : chart.groups) {
    for (const auto* values : {&group.values, &group.low, &group.high}) {
      for (const double value : *values) range.add(value);
    }
  }
  return range;
}

}  // namespace

std::string to_svg(const BarChart& chart) {
  const double width = std::max(chart.width, 240);
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; chart.series.size() > 1 && i < chart.series.size(); ++i) {
    legend.push_back({chart.series[i], static_cast<int>(i % kColours), false, Stroke::Solid});
  }
  const Head head(chart.title, legend, width);
  std::size_t bars = std::max<std::size_t>(chart.series.size(), 1);
  double widest = 0;
  for (const BarGroup& group : chart.groups) {
    bars = std::max(bars, group.values.size());
    widest = std::max(widest, text_width(group.name, kFontSize));
  }
  const double group_height = static_cast<double>(bars) * kBar + kGroupGap;
  const double left = kMargin + std::min(widest, width * 0.4) + 10, right = width - kMargin - 62;
  const double top = head.height() + 6, bottom = top + static_cast<double>(chart.groups.size()) * group_height + 4;
  Svg svg(width, bottom + (chart.value.title.empty() ? 26 : 44), chart.title);
  head.draw(svg);
  const Scale scale = value_range(chart).scale(6, true);
  const auto place = [&](double value) { return left + scale.place(value) * (right - left); };
  for (std::size_t i = 0; i < scale.ticks.at.size(); ++i) {
    svg.line(place(scale.ticks.at[i]), top, place(scale.ticks.at[i]), bottom, "grid");
    svg.text(place(scale.ticks.at[i]), bottom + 16, scale.ticks.labels[i], Anchor::Middle, "tick");
  }
  svg.text(right, bottom + 36, chart.value.title, Anchor::End, "tick");
  const double origin = chart.value.logarithmic ? left : place(0);
  for (std::size_t g = 0; g < chart.groups.size(); ++g) {
    const BarGroup& group = chart.groups[g];
    const double y = top + static_cast<double>(g) * group_height + kGroupGap / 2 + 2;
    svg.text(left - 8, y + static_cast<double>(bars) * kBar / 2 + 3, fitted(group.name, kFontSize, left - kMargin - 8),
             Anchor::End, "name");
    for (std::size_t i = 0; i < group.values.size(); ++i) {
      const double value = group.values[i], at = y + static_cast<double>(i) * kBar;
      const bool shown = scale.shows(value);
      const double end = shown ? place(value) : origin;
      const double low = entry(group.low, i), high = entry(group.high, i);
      double label = std::max(origin, end);
      if (shown) {
        const std::string name = (i < chart.series.size() ? chart.series[i] + ", " : "") + group.name;
        svg.rect(std::min(origin, end), at, std::fabs(end - origin), kBar - 3, "fill", static_cast<int>(i % kColours),
                 name + ": " + number_text(value, 4));
      }
      if (shown && scale.shows(low) && scale.shows(high)) {
        const double middle = at + (kBar - 3) / 2;
        svg.line(place(low), middle, place(high), middle, "whisker");
        svg.line(place(low), middle - 3, place(low), middle + 3, "whisker");
        svg.line(place(high), middle - 3, place(high), middle + 3, "whisker");
        label = std::max(label, place(high));
      }
      svg.text(label + 5, at + kBar - 4, number_text(value, 4), Anchor::Start, "value");
    }
  }
  svg.line(origin, top, origin, bottom, "axis");
  if (chart.groups.empty()) svg.text((left + right) / 2, bottom - 2, "nothing to show", Anchor::Middle, "tick");
  return std::move(svg).finish();
}

}  // namespace stepwell::io
