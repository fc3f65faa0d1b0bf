// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/table.h"

namespace stepwell::cli {

namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::int64_t kPlainLines = 20;  // in a whole run
constexpr int kBarWidth = 24;

std::string rate(double per_second) {
  if (per_second >= 1e6) return decimal(per_second / 1e6, 1) + "M";
  if (per_second >= 1e3) return decimal(per_second / 1e3, 1) + "k";
  return decimal(per_second, 0);
}

std::string bar(double part) {
  const int filled = static_cast<int>(part * kBarWidth);
  std::string text;
  for (int i = 0; i < kBarWidth; ++i) text += i < filled ? "━" : "─";
  return text;
}

// Columns of the terminal; 0: unknown.
int terminal_width() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// At most `columns` code points.
std::string cut(const std::string& text, int columns) {
  int seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (begins && ++seen > columns) return text.substr(0, i);
  }
  return text;
}

}  // namespace

std::string duration(double seconds) {
  const auto total = static_cast<long long>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  char buffer[32];
  if (total >= 3600) {
    std::snprintf(buffer, sizeof buffer, "%lld:%02lld:%02lld", total / 3600, total / 60 % 60, total % 60);
  } else {
    std::snprintf(buffer, sizeof buffer, "%lld:%02lld", total / 60, total % 60);
  }
  return buffer;
}

std::string spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

StatusLine::StatusLine(std::int64_t first, std::int64_t steps) : first_(first), steps_(steps) {
  const char* kind = std::getenv("TERM");
  terminal_ = isatty(STDERR_FILENO) == 1 && kind && std::string_view(kind) != "dumb";
}

StatusLine::~StatusLine() { clear(); }

void StatusLine::clear() {
  if (terminal_ && drawn_ != Clock::time_point{}) std::fputs("\r\x1b[K", stderr);
}

void StatusLine::print(const std::string& line) {
  clear();
  std::fprintf(stderr, "%s\n", line.c_str());
}

void StatusLine::show(std::int64_t step, const std::function<std::string(const std::string& left)>& text) {
  const auto now = Clock::now();
  const bool last = step == steps_;
  const bool due = terminal_ ? now - drawn_ >= kRedraw : step % std::max<std::int64_t>(steps_ / kPlainLines, 1) == 0;
  if (!last && !due) return;
  const double part = static_cast<double>(step) / static_cast<double>(steps_);
  const std::chrono::duration<double> elapsed = now - start_;
  const double left = elapsed.count() / static_cast<double>(step - first_) * static_cast<double>(steps_ - step);
  const std::string line = decimal(100 * part, 0) + " %  step " + std::to_string(step) + "/" + std::to_string(steps_) +
                           "  " + text(duration(left) + " left");
  if (terminal_) {
    drawn_ = now;
    const int width = terminal_width();
    const std::string drawn = bar(part) + "  " + line;
    std::fprintf(stderr, "\r%s\x1b[K", (width > 1 ? cut(drawn, width - 1) : drawn).c_str());
    std::fflush(stderr);
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
}

void SmoothedLoss::add(double loss) {
  if (!std::isfinite(loss)) return;
  value_ = any_ ? 0.9 * value_ + 0.1 * loss : loss;
  any_ = true;
}

namespace {

std::string of_skipped(std::int64_t skipped) {
  return skipped > 0 ? "  " + std::to_string(skipped) + " skipped" : std::string();
}

}  // namespace

void TrainProgress::on_step(const train::StepMetrics& metrics) {
  skipped_ = metrics.skipped;
  loss_.add(metrics.loss);
  line_.show(metrics.step, [&](const std::string& left) {
    return "loss " + decimal(loss_.value(), 4) + "  " + rate(metrics.tokens_per_second) + " tokens/s  " + left +
           of_skipped(skipped_);
  });
}

void TrainProgress::on_evaluation(std::int64_t step, const train::Figures& figures) {
  figures_ = figures;
  std::string text = "held out at step " + std::to_string(step) + ":";
  for (const auto& [name, value] : figures) {
    const bool whole = value == std::floor(value) && std::fabs(value) < 1e15;
    text += "  " + spaced(name) + " " + (whole ? with_commas(static_cast<long long>(value)) : decimal(value, 4));
  }
  line_.print(text);
}

void DistillProgress::on_step(const memory::DistillStep& step, std::int64_t) {
  if (step.phase != phase_) {
    phase_ = step.phase;
    loss_ = {};
  }
  skipped_ += step.skipped;
  loss_.add(step.loss);
  line_.show(step.step, [&](const std::string& left) {
    return phase_ + "  loss " + decimal(loss_.value(), 5) + "  " + left + of_skipped(skipped_);
  });
}

void DistillProgress::on_round(std::int64_t round, const memory::RoundReport& report) {
  std::string text = round == 0 ? "before imitation: drift " : "round " + std::to_string(round) + ": drift ";
  text += significant(report.drift);
  if (round > 0 && report.accepted) text += "  best so far";
  if (report.restarts > 0) text += "  " + std::to_string(report.restarts) + " restarts";
  line_.print(text);
}

}  // namespace stepwell::cli
