// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/forecast.h"

#include <algorithm>
#include <limits>
#include <string>

#include "stepwell/autograd/variable.h"
#include "stepwell/core/error.h"

namespace stepwell::train {

namespace {

constexpr std::int64_t kSegment = 1024;  // values given to the model at once

double square(double x) { return x * x; }

double exponential_error(std::span<const double> values, std::int64_t first, double rate) {
  double average = values[0], squares = 0;
  for (std::int64_t t = 1; t < static_cast<std::int64_t>(values.size()); ++t) {
    const double value = values[static_cast<std::size_t>(t)];
    if (t >= first) squares += square(value - average);
    average += rate * (value - average);
  }
  return squares;
}

}  // namespace

Forecast forecast(Context& ctx, const models::Model& model, std::span<const double> values, std::int64_t first,
                  std::int64_t ahead) {
  STEPWELL_CHECK(model.scales().size() == 1 && model.output_width() == 1, "forecast",
                 "a " + std::string(model.type()) + " of " + std::to_string(model.scales().size()) +
                     " channels, expected a forecaster of one");
  STEPWELL_CHECK(first >= 1 && ahead >= 0 && (ahead == 0 || !values.empty()), "forecast",
                 std::to_string(ahead) + " values after " + std::to_string(values.size()) + ", errors from value " +
                     std::to_string(first) + " on; expected at least one value, and one before the first error");
  const NoGrad no_grad;
  const models::ChannelScale scale = model.scales().front();
  models::States states;
  // Feeds values and returns what is predicted after each.
  const auto read = [&](std::span<const double> part) {
    const Tensor input = Tensor::empty({1, static_cast<std::int64_t>(part.size()), 1});
    std::ranges::transform(part, input.data<float>(),
                           [&](double x) { return static_cast<float>((x - scale.mean) / scale.deviation); });
    return model.forward(ctx, input, states).value();
  };
  const auto in_units = [&](float y) { return scale.mean + scale.deviation * static_cast<double>(y); };

  Forecast result;
  const auto count = static_cast<std::int64_t>(values.size());
  double prediction = 0;
  for (std::int64_t begin = 0; begin < count; begin += kSegment) {
    const std::int64_t n = std::min(kSegment, count - begin);
    const Tensor next = read(values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(n)));
    for (std::int64_t t = begin; t < begin + n; ++t) {
      prediction = in_units(next.data<float>()[t - begin]);
      if (t + 1 < first || t + 1 >= count) continue;
      const double here = values[static_cast<std::size_t>(t)], after = values[static_cast<std::size_t>(t + 1)];
      result.predicted.push_back(prediction);
      result.mse += square(prediction - after);
      result.persistence += square(here - after);
    }
  }
  for (std::int64_t i = 0; i < ahead; ++i) {
    if (i > 0) prediction = in_units(read(std::span(&result.next.back(), 1)).data<float>()[0]);
    result.next.push_back(prediction);
  }
  result.values = std::max<std::int64_t>(count - first, 0);
  if (result.values == 0) return result;
  double best = std::numeric_limits<double>::infinity();
  for (int percent = 1; percent < 100; ++percent) {
    best = std::min(best, exponential_error(values, first, percent / 100.0));
  }
  const auto total = static_cast<double>(result.values);
  result.mse /= total;
  result.persistence /= total;
  result.best_exponential_average = best / total;
  return result;
}

}  // namespace stepwell::train
