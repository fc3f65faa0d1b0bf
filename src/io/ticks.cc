// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "io/ticks.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "stepwell/io/chart.h"

namespace stepwell::io {

namespace {

constexpr double kLargest = 1e300;  // beyond it differences would overflow

std::string superscript(int n) {
  static constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = n < 0 ? "⁻" : "";
  for (const char digit : std::to_string(std::abs(n))) text += kDigits[digit - '0'];
  return text;
}

// x with `decimals` digits after the point, commas between thousands and a true minus sign.
std::string fixed(double x, int decimals) {
  char buffer[400];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, std::fabs(x), std::chars_format::fixed, decimals);
  std::string text(buffer, error == std::errc() ? end : buffer);
  const std::size_t point = std::min(text.find('.'), text.size());
  for (std::size_t at = point; at > 3; at -= 3) text.insert(at - 3, ",");
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  return (x < 0 && !zero ? "−" : "") + text;
}

// Without zeros at the end of the digits after the point.
std::string without_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

int exponent_of(double x) { return static_cast<int>(std::floor(std::log10(std::fabs(x)))); }

double power(int exponent) { return std::pow(10.0, exponent); }

// The mantissa of x with `decimals` digits after the point, times a power of ten.
std::string scientific(double x, int decimals) {
  char buffer[40];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, std::fabs(x), std::chars_format::scientific, decimals);
  const std::string text(buffer, error == std::errc() ? end : buffer);
  const std::size_t e = text.find('e');
  int exponent = 0;
  const char* digits = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits, text.data() + text.size(), exponent);
  const std::string mantissa = without_zeros(text.substr(0, e));
  const std::string sign = x < 0 ? "−" : "";
  return sign + (mantissa == "1" ? "10" : mantissa + "×10") + superscript(exponent);
}

// Labels of multiples of `step` up to `largest` in size: all with as many decimals as the step needs.
std::string tick_label(double x, double step, double largest) {
  if (x == 0) return "0";
  const int finest = exponent_of(step * 1.0001), highest = exponent_of(largest * 1.0001);
  const bool wide = highest >= 6 || finest < -5;
  if (wide && highest - finest <= 3) return scientific(x, std::max(exponent_of(x * 1.0001) - finest, 0));
  return fixed(x, std::clamp(-finest, 0, 17));
}

double next_step(double rough) {
  const double unit = power(exponent_of(rough));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * unit >= rough * (1 - 1e-9)) return factor * unit;
  }
  return 10 * unit;
}

}  // namespace

std::string number_text(double x, int digits) {
  if (!std::isfinite(x)) return "–";
  if (x == 0) return "0";
  const int exponent = exponent_of(x);
  if (exponent < -4 || exponent > 14) return scientific(x, digits - 1);
  return without_zeros(fixed(x, std::max(digits - 1 - exponent, 0)));
}

Ticks linear_ticks(double low, double high, int wanted, bool widen) {
  low = std::clamp(low, -kLargest, kLargest);
  high = std::clamp(high, -kLargest, kLargest);
  const double size = std::max(std::fabs(low), std::fabs(high));
  if (!(high - low > 1e-12 * size) || high - low < 1e-300) {  // one value
    const double room = size < 1e-290 ? 1 : size / 2;
    low -= room;
    high += room;
  }
  const double step = next_step((high - low) / (wanted - 1));
  const double first = widen ? std::floor(low / step + 1e-9) : std::ceil(low / step - 1e-9);
  const double last = widen ? std::ceil(high / step - 1e-9) : std::floor(high / step + 1e-9);
  Ticks ticks{low, high, {}, {}};
  if (widen) {
    ticks.low = first * step;
    ticks.high = last * step;
  }
  const double largest = std::max(std::fabs(first), std::fabs(last)) * step;
  for (double k = first; k <= last; k += 1) {
    ticks.at.push_back(k * step);
    ticks.labels.push_back(tick_label(k * step, step, largest));
  }
  return ticks;
}

Ticks log_ticks(double low, double high, int wanted) {
  low = std::clamp(low, 1e-300, kLargest);
  high = std::clamp(high, low, kLargest);
  std::vector<double> candidates;  // 1, 2 and 5 times powers of ten around the range
  for (int e = exponent_of(low) - 1; e <= exponent_of(high) + 1; ++e) {
    for (const double factor : {1.0, 2.0, 5.0}) candidates.push_back(factor * power(e));
  }
  auto first = std::upper_bound(candidates.begin(), candidates.end(), low * (1 + 1e-9)) - candidates.begin() - 1;
  auto last = std::lower_bound(candidates.begin(), candidates.end(), high * (1 - 1e-9)) - candidates.begin();
  if (first == last) {
    --first;
    ++last;
  }
  Ticks ticks{candidates[static_cast<std::size_t>(first)], candidates[static_cast<std::size_t>(last)], {}, {}};
  const auto count = static_cast<int>(last - first) + 1;
  const int decades = std::max(1, (count / 3 + wanted - 1) / wanted);  // from one power of ten to the next shown
  for (auto i = first; i <= last; ++i) {
    const double x = candidates[static_cast<std::size_t>(i)];
    const int e = exponent_of(x * 1.0001);
    const bool shown = count <= wanted + 2 || (i % 3 == 0 && e % decades == 0);
    if (!shown) continue;
    ticks.at.push_back(x);
    ticks.labels.push_back(e >= -4 && e <= 5 ? fixed(x, std::max(-e, 0)) : scientific(x, 0));
  }
  return ticks;
}

}  // namespace stepwell::io
