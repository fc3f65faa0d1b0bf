// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "stepwell/train/task.h"

namespace stepwell::train {

// Next-value prediction on one series. The model is trained on values shifted and scaled to mean 0 and variance 1 over
// the first (1 − fraction) of the series, and keeps that scale; any model is evaluated with its own. Figures: those of
// forecast() over the held-out values, read from the first of them on.
class SeriesTask : public Task {
 public:
  // Throws Error (File) if the part to train on is shorter than a window or constant.
  SeriesTask(std::vector<double> values, double fraction, std::int64_t length, std::uint64_t seed);

  std::vector<std::string_view> model_types() const override { return {"forecaster"}; }
  void complete(Config& model) const override;
  Variable loss(Context& ctx, const models::Model& model, std::int64_t first, std::int64_t count,
                const Rng* dropout_rng) const override;
  Figures evaluate(Context& ctx, const models::Model& model, std::int64_t most) const override;
  std::string fingerprint() const override;
  std::string describe() const override;

 private:
  std::vector<double> raw_;
  std::vector<float> values_;  // shifted and scaled
  std::size_t trained_;        // how many are trained on
  models::ChannelScale scale_;
  std::int64_t length_;
  Rng windows_;
};

}  // namespace stepwell::train
