// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "io/chart_parts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stepwell::io {

namespace {

constexpr double kTitleHeight = 26, kLegendRow = 20, kSwatch = 22;

}  // namespace

bool Scale::shows(double value) const { return std::isfinite(value) && (!logarithmic || value > 0); }

double Scale::place(double value) const {
  const auto part = [](double x, double low, double high) { return std::clamp((x - low) / (high - low), 0.0, 1.0); };
  if (!logarithmic) return part(value, ticks.low, ticks.high);
  return part(std::log10(value), std::log10(ticks.low), std::log10(ticks.high));
}

Range::Range(const Axis& axis) : logarithmic_(axis.logarithmic) {
  if (axis.low) add(*axis.low);
  if (axis.high) add(*axis.high);
}

void Range::add(double value) {
  if (!std::isfinite(value) || (logarithmic_ && value <= 0)) return;
  low_ = low_ ? std::min(*low_, value) : value;
  high_ = high_ ? std::max(*high_, value) : value;
}

void Range::add(const Range& other) {
  if (other.low_) add(*other.low_);
  if (other.high_) add(*other.high_);
}

void Range::pad(double part) {
  if (logarithmic_ || !low_) return;
  const double size = *high_ * part - *low_ * part;
  *low_ -= size;
  *high_ += size;
}

Scale Range::scale(int wanted, bool widen) const {
  if (logarithmic_) return {true, log_ticks(low_.value_or(0.1), high_.value_or(1), wanted)};
  return {false, linear_ticks(low_.value_or(0), high_.value_or(1), wanted, widen)};
}

Head::Head(const std::string& title, std::vector<LegendEntry> legend, double width)
    : title_(fitted(title, 14.5, width - 2 * kMargin)), legend_(std::move(legend)) {
  height_ = title_.empty() ? 6 : 6 + kTitleHeight;
  if (legend_.empty()) return;
  double x = kMargin;
  for (LegendEntry& entry : legend_) {
    entry.name = fitted(entry.name, kFontSize, width - 2 * kMargin - kSwatch);
    const double entry_width = kSwatch + text_width(entry.name, kFontSize) + 18;
    if (x > kMargin && x + entry_width - 18 > width - kMargin) {
      x = kMargin;
      height_ += kLegendRow;
    }
    x_.push_back(x);
    y_.push_back(height_ + 13);
    x += entry_width;
  }
  height_ += kLegendRow + 2;
}

void Head::draw(Svg& svg) const {
  svg.text(kMargin, 24, title_, Anchor::Start, "title");
  for (std::size_t i = 0; i < legend_.size(); ++i) {
    const LegendEntry& entry = legend_[i];
    if (entry.line) svg.polyline({{x_[i], y_[i] - 4}, {x_[i] + 16, y_[i] - 4}}, entry.colour, entry.stroke);
    else svg.rect(x_[i] + 3, y_[i] - 10, 11, 11, "fill", entry.colour);
    svg.text(x_[i] + kSwatch, y_[i], entry.name, Anchor::Start, "name");
  }
}

}  // namespace stepwell::io
