// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "stepwell/train/trainer.h"

namespace stepwell::cli {

// Shows a training run on stderr: on a terminal one line with a bar, percent, rate, loss and time left, drawn over and
// over; elsewhere a plain line now and then. Evaluations get a line of their own.
class TrainProgress : public train::Observer {
 public:
  // A run that has done `first` of `steps` steps.
  TrainProgress(std::int64_t first, std::int64_t steps);
  ~TrainProgress() override;

  void on_step(const train::StepMetrics& metrics) override;
  void on_evaluation(std::int64_t step, const train::Figures& figures) override;
  const train::Figures& last_figures() const { return figures_; }
  std::int64_t skipped() const { return skipped_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::string status(const train::StepMetrics& metrics) const;
  void clear_line();

  std::int64_t first_, steps_;
  bool terminal_;
  Clock::time_point start_ = Clock::now(), drawn_{};
  double loss_ = 0;  // moving average
  bool any_loss_ = false;
  std::int64_t skipped_ = 0;
  train::Figures figures_;
};

// 75 → "1:15", 3700 → "1:01:40".
std::string duration(double seconds);

// "bits_per_byte" → "bits per byte".
std::string spaced(std::string name);

}  // namespace stepwell::cli
