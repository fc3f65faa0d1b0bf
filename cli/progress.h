// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "stepwell/memory/distiller.h"
#include "stepwell/train/trainer.h"

namespace stepwell::cli {

// A line on stderr about work that goes on: on a terminal one line with a bar, drawn over and over; elsewhere a plain
// line now and then.
class StatusLine {
 public:
  // Work that has done `first` of `steps` steps.
  StatusLine(std::int64_t first, std::int64_t steps);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // Shows `text(left)` behind the percentage and the step, where it is time to; `left` is the time left. The last step
  // is always shown.
  void show(std::int64_t step, const std::function<std::string(const std::string& left)>& text);
  // A line of its own, above.
  void print(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  void clear();

  std::int64_t first_, steps_;
  bool terminal_;
  Clock::time_point start_ = Clock::now(), drawn_{};
};

// A moving average of finite losses.
class SmoothedLoss {
 public:
  void add(double loss);
  double value() const { return value_; }

 private:
  double value_ = 0;
  bool any_ = false;
};

// Shows a training run: percent, rate, loss and time left. Evaluations get a line of their own.
class TrainProgress : public train::Observer {
 public:
  // A run that has done `first` of `steps` steps.
  TrainProgress(std::int64_t first, std::int64_t steps) : line_(first, steps) {}

  void on_step(const train::StepMetrics& metrics) override;
  void on_evaluation(std::int64_t step, const train::Figures& figures) override;
  const train::Figures& last_figures() const { return figures_; }
  std::int64_t skipped() const { return skipped_; }

 private:
  StatusLine line_;
  SmoothedLoss loss_;
  std::int64_t skipped_ = 0;
  train::Figures figures_;
};

// Shows a distillation the same way; rounds of imitation get a line of their own.
class DistillProgress : public memory::DistillObserver {
 public:
  DistillProgress(std::int64_t first, std::int64_t steps) : line_(first, steps) {}

  void on_step(const memory::DistillStep& step, std::int64_t planned) override;
  void on_round(std::int64_t round, const memory::RoundReport& report) override;

 private:
  StatusLine line_;
  SmoothedLoss loss_;
  std::string phase_;
  std::int64_t skipped_ = 0;
};

// 75 → "1:15", 3700 → "1:01:40".
std::string duration(double seconds);

// "bits_per_byte" → "bits per byte".
std::string spaced(std::string name);

}  // namespace stepwell::cli
