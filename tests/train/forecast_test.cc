// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/forecast.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"
#include "stepwell/models/causal_lm.h"
#include "stepwell/models/forecaster.h"
#include "stepwell/models/stream.h"

namespace stepwell::train {
namespace {

std::unique_ptr<models::Model> small_model() {
  Config options;
  options.set("init", "active");
  return models::make_forecaster(
      {.backbone = {.width = 6, .mixer_options = options}, .scales = {{.mean = 20, .deviation = 3}}}, Rng(3));
}

std::vector<double> wave(int n) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(20 + 3 * std::sin(0.4 * i) + 0.1 * (i * 37 % 11));
  return values;
}

// Step by step with a stream, which feeds its own predictions back in the end.
TEST(Forecast, IsWhatAStreamPredicts) {
  const auto model = small_model();
  Context ctx = Context::serial();
  const std::vector<double> values = wave(1100);  // more than one segment
  const Forecast f = forecast(ctx, *model, values, 1000, 5);
  models::Stream stream(*model, ctx);
  float next = 0;
  double squares = 0;
  for (std::size_t t = 0; t < values.size(); ++t) {
    if (t >= 1000) {
      squares += std::pow(next - values[t], 2);
      EXPECT_NEAR(f.predicted.at(t - 1000), next, 1e-4);
    }
    const auto value = static_cast<float>(values[t]);
    ASSERT_TRUE(stream.step(std::span(&value, 1), std::span(&next, 1)));
  }
  EXPECT_EQ(f.values, 100);
  EXPECT_EQ(f.predicted.size(), 100u);
  EXPECT_NEAR(f.mse, squares / 100, 1e-4 * f.mse);
  ASSERT_EQ(f.next.size(), 5u);
  for (const double predicted : f.next) {
    EXPECT_NEAR(predicted, next, 1e-4);
    ASSERT_TRUE(stream.step(std::span(&next, 1), std::span(&next, 1)));
  }
}

TEST(Forecast, SetsSimplePredictorsBeside) {
  const auto model = small_model();
  Context ctx = Context::serial();
  const std::vector<double> values = {1e9, 1e9 + 3, 1e9 - 1, 1e9 + 1, 1e9};  // needs double
  const Forecast f = forecast(ctx, *model, values, 2);
  EXPECT_EQ(f.values, 3);
  EXPECT_DOUBLE_EQ(f.persistence, (16 + 4 + 1) / 3.0);
  double best = std::numeric_limits<double>::infinity();
  for (int percent = 1; percent < 100; ++percent) {
    const double a = percent / 100.0, b = 1 - a;
    const double at2 = b * 0 + a * 3, at3 = b * at2 - a, at4 = b * at3 + a;  // above 1e9
    best = std::min(best, std::pow(at2 + 1, 2) + std::pow(at3 - 1, 2) + std::pow(at4, 2));
  }
  EXPECT_NEAR(f.best_exponential_average, best / 3, 1e-6);
  EXPECT_TRUE(f.next.empty());
}

TEST(Forecast, RefusesWhatItCannotRead) {
  const auto model = small_model();
  Context ctx = Context::serial();
  const std::vector<double> values = wave(3);
  EXPECT_EQ(forecast(ctx, *model, values, 3, 2).values, 0);
  EXPECT_EQ(forecast(ctx, *model, values, 9, 2).next, forecast(ctx, *model, values, 1, 2).next);
  EXPECT_EQ(forecast(ctx, *model, {}, 1).values, 0);
  EXPECT_THROW(forecast(ctx, *model, {}, 1, 1), Error);
  EXPECT_THROW(forecast(ctx, *model, values, 0), Error);
  EXPECT_THROW(forecast(ctx, *models::make_forecaster({.channels = 2}, Rng(1)), values, 1), Error);
  EXPECT_THROW(forecast(ctx, *models::make_causal_lm({}, Rng(1)), values, 1), Error);
}

}  // namespace
}  // namespace stepwell::train
