// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "io/svg.h"

#include <charconv>
#include <cmath>

#include "io/markup.h"

namespace stepwell::io {

namespace {

std::string style() {
  std::string css = std::string(".chart{") + kLightColours +
                    "font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,sans-serif;font-size:12px}"
                    "@media (prefers-color-scheme:dark){.chart{" +
                    kDarkColours + "}}";
  css +=
      ".chart text{fill:var(--note)}.chart .title{fill:var(--ink);font-size:14px;font-weight:600}"
      ".chart .name,.chart .value{fill:var(--ink)}.chart .ground{fill:var(--ground)}"
      ".chart .grid{stroke:var(--grid)}.chart .axis,.chart .whisker{stroke:var(--note)}"
      ".chart .mark{stroke:var(--note);stroke-dasharray:2 3}"
      ".chart .line{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}"
      ".chart .faint{opacity:.45;stroke-width:1}.chart .dashed{stroke-dasharray:6 4}.chart "
      ".area{fill:currentColor;opacity:.18}.chart .fill{fill:currentColor}";
  for (int i = 0; i < kColours; ++i) {
    const std::string number = std::to_string(i);
    css += ".chart .c" + number + "{color:var(--c" + number + ")}";
  }
  return css;
}

constexpr const char* kStrokes[] = {"line", "line dashed", "line faint"};

std::string number(double x) {
  char buffer[64];
  const double safe = std::isfinite(x) ? std::fmin(std::fmax(x, -1e6), 1e6) : 0;
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, safe, std::chars_format::fixed, 1);
  std::string text(buffer, error == std::errc() ? end : buffer);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string coloured(std::string_view css_class, int colour) {
  return " class=\"" + std::string(css_class) + (colour < 0 ? "" : " c" + std::to_string(colour)) + "\"";
}

// Width of a code point as a part of the font size, as sans-serif fonts have it on average.
double advance(char32_t c) {
  if (c == ' ' || c == '.' || c == ',' || c == ':' || c == ';' || c == '\'' || c == '|') return 0.3;
  if (c == 'i' || c == 'j' || c == 'l' || c == 'f' || c == 't' || c == 'r' || c == '(' || c == ')') return 0.37;
  if (c == 'm' || c == 'w' || c == 'M' || c == 'W' || c == 0x2026) return 0.88;
  if (c >= 'A' && c <= 'Z') return 0.68;
  return c < 0x1100 || (c >= 0x2000 && c < 0x2300) ? 0.58 : 1.0;
}

// Takes one code point off the front; any byte that is no UTF-8 counts as one.
char32_t take(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (length > text.size()) length = 1;
  char32_t code = length == 1 ? lead : lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3F);
  text.remove_prefix(length);
  return code;
}

}  // namespace

double text_width(std::string_view text, double size) {
  double width = 0;
  while (!text.empty()) width += advance(take(text));
  return width * size;
}

std::string fitted(std::string_view text, double size, double width) {
  if (text_width(text, size) <= width) return std::string(text);
  double used = advance(0x2026) * size;
  std::string_view rest = text;
  for (std::string_view next = rest; !next.empty(); rest = next) {
    used += advance(take(next)) * size;
    if (used > width) break;
  }
  return std::string(text.substr(0, text.size() - rest.size())) + "…";
}

Svg::Svg(double width, double height, std::string_view label) {
  out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 " + number(width) + " " +
         number(height) + "\" width=\"" + number(width) + "\" height=\"" + number(height) +
         "\" role=\"img\" aria-label=\"" + escape_markup(label) + "\">\n<style>" + style() + "</style>\n";
  rect(0, 0, width, height, "ground", -1);
}

void Svg::attribute(std::string_view name, double value) {
  out_ += " " + std::string(name) + "=\"" + number(value) + "\"";
}

void Svg::text(double x, double y, std::string_view content, Anchor anchor, std::string_view css_class) {
  if (content.empty()) return;
  out_ += "<text";
  attribute("x", x);
  attribute("y", y);
  if (anchor != Anchor::Start) out_ += anchor == Anchor::End ? " text-anchor=\"end\"" : " text-anchor=\"middle\"";
  out_ += coloured(css_class, -1) + ">" + escape_markup(content) + "</text>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  out_ += "<line";
  attribute("x1", x1);
  attribute("y1", y1);
  attribute("x2", x2);
  attribute("y2", y2);
  out_ += coloured(css_class, -1) + "/>\n";
}

void Svg::rect(double x, double y, double width, double height, std::string_view css_class, int colour,
               std::string_view tooltip) {
  out_ += "<rect";
  attribute("x", x);
  attribute("y", y);
  attribute("width", width);
  attribute("height", height);
  out_ += coloured(css_class, colour);
  out_ += tooltip.empty() ? "/>\n" : "><title>" + escape_markup(tooltip) + "</title></rect>\n";
}

void Svg::dot(double x, double y, int colour) {
  out_ += "<circle";
  attribute("cx", x);
  attribute("cy", y);
  attribute("r", 2.5);
  out_ += coloured("fill", colour) + "/>\n";
}

void Svg::points(const std::vector<std::pair<double, double>>& points) {
  char letter = 'M';
  std::string before;  // the height of the point before
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& [x, y] = points[i];
    const std::string height = number(y);
    const bool last = i + 1 == points.size();
    const bool inside = !last && i > 0 && (points[i - 1].first - x) * (points[i + 1].first - x) < 0;
    if (inside && height == before && height == number(points[i + 1].second)) continue;  // on a level line
    out_ += letter + number(x) + " " + height;
    letter = 'L';
    before = height;
  }
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, int colour, Stroke stroke) {
  out_ += "<path" + coloured(kStrokes[static_cast<int>(stroke)], colour) + " d=\"";
  this->points(points);
  out_ += "\"/>\n";
}

void Svg::area(const std::vector<std::pair<double, double>>& points, int colour) {
  out_ += "<path" + coloured("area", colour) + " d=\"";
  this->points(points);
  out_ += "Z\"/>\n";
}

std::string Svg::finish() && {
  out_ += "</svg>\n";
  return std::move(out_);
}

}  // namespace stepwell::io
