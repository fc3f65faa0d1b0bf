// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepwell/io/chart.h"

namespace stepwell::io {

// Where text stands in relation to its position.
enum class Anchor { Start, Middle, End };

// Writes one SVG document; lengths in its own units, one decimal.
class Svg {
 public:
  // `label` is what a screen reader says.
  Svg(double width, double height, std::string_view label);

  // Classes: see the style in svg.cc; a colour is 0 … kColours − 1, or −1 for none.
  void text(double x, double y, std::string_view content, Anchor anchor, std::string_view css_class);
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  void rect(double x, double y, double width, double height, std::string_view css_class, int colour,
            std::string_view tooltip = {});
  void dot(double x, double y, int colour);
  void polyline(const std::vector<std::pair<double, double>>& points, int colour, Stroke stroke);
  void area(const std::vector<std::pair<double, double>>& points, int colour);

  std::string finish() &&;

 private:
  void points(const std::vector<std::pair<double, double>>& points);
  void attribute(std::string_view name, double value);
  std::string out_;
};

// How wide text of a font size is, nearly.
double text_width(std::string_view text, double size);

// The longest beginning of `text` that fits into `width`, with "…" if it is not the whole.
std::string fitted(std::string_view text, double size, double width);

}  // namespace stepwell::io
