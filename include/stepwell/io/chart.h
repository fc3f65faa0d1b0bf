// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

// Charts as self-contained SVG text, in light or dark colours as the reader's system prefers. The same chart gives the
// same bytes. Texts may hold anything; numbers that are not finite are left out, of a logarithmic axis also those ≤ 0.
namespace stepwell::io {

struct Axis {
  std::string title{};  // with the unit
  bool logarithmic = false;
  std::optional<double> low{}, high{};  // what it shows at least
};

enum class Stroke { Solid, Dashed, Faint };  // Faint: raw data behind a line that sums them up

struct Line {
  std::string name{};                 // in the legend, which is drawn for two lines or more
  std::vector<double> x{}, y{};       // as many of each; the line breaks where one is left out
  std::vector<double> low{}, high{};  // a band around the line; empty: none
  Stroke stroke = Stroke::Solid;
};

struct Mark {
  double x = 0;
  std::string name{};
};

struct LineChart {
  std::string title{};
  Axis x{}, y{};
  std::vector<Line> lines{};
  std::vector<Mark> marks{};  // upright rules with their names
  int width = 960, height = 320;
};

// Horizontal bars in groups: one bar of a group for each series.
struct BarGroup {
  std::string name{};
  std::vector<double> values{};
  std::vector<double> low{}, high{};  // whiskers; empty: none
};

struct BarChart {
  std::string title{};
  Axis value{};
  std::vector<std::string> series{};  // in the legend, which is drawn for two series or more
  std::vector<BarGroup> groups{};
  int width = 960;
};

// Small charts side by side, with one legend; `width` and `height` of the panels are not used.
struct SmallMultiples {
  std::string title{};
  std::vector<LineChart> panels{};
  int columns = 4;
  bool same_scale = true;  // of y, in all panels
  int width = 960, panel_height = 150;
};

// Throws Error (Argument) where x and y, or a line and its band, are not as many.
std::string to_svg(const LineChart& chart);
std::string to_svg(const BarChart& chart);
std::string to_svg(const SmallMultiples& chart);

// A number for people, in `digits` significant digits: "0.0123", "12,300", "1.23×10⁻⁷", "–" if it is not finite.
std::string number_text(double x, int digits = 3);

}  // namespace stepwell::io
