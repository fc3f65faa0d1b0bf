// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stepwell/io/chart.h"

#include "io/svg.h"
#include "io/ticks.h"

// What all kinds of charts are made of.
namespace stepwell::io {

inline constexpr double kMargin = 14, kFontSize = 12;

struct Box {
  double left, top, right, bottom;
  double width() const { return right - left; }
  double height() const { return bottom - top; }
};

// From values to places between 0 and 1.
struct Scale {
  bool logarithmic = false;
  Ticks ticks{};
  bool shows(double value) const;
  double place(double value) const;
};

// The smallest and largest value an axis has to show.
class Range {
 public:
  explicit Range(const Axis& axis);
  void add(double value);  // ignored unless it can be shown
  void add(const Range& other);
  void pad(double part);  // of its size, at both ends; not of a logarithmic axis
  // About `wanted` ticks; the range ends with ticks if `widen`. Without any value: 0 … 1.
  Scale scale(int wanted, bool widen) const;

 private:
  bool logarithmic_;
  std::optional<double> low_, high_;
};

// What a line chart's y axis has to show; checks its lines.
Range y_range(const LineChart& chart);

struct LegendEntry {
  std::string name;
  int colour;
  bool line;
  Stroke stroke;
};

// Title and legend, at the top of a chart.
class Head {
 public:
  Head(const std::string& title, std::vector<LegendEntry> legend, double width);
  double height() const { return height_; }
  void draw(Svg& svg) const;

 private:
  std::string title_;
  std::vector<LegendEntry> legend_;
  std::vector<double> x_, y_;  // of each legend entry
  double height_;
};

}  // namespace stepwell::io
