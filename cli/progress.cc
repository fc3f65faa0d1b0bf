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

TrainProgress::TrainProgress(std::int64_t first, std::int64_t steps) : first_(first), steps_(steps) {
  const char* kind = std::getenv("TERM");
  terminal_ = isatty(STDERR_FILENO) == 1 && kind && std::string_view(kind) != "dumb";
}

TrainProgress::~TrainProgress() { clear_line(); }

void TrainProgress::clear_line() {
  if (terminal_ && drawn_ != Clock::time_point{}) std::fputs("\r\x1b[K", stderr);
}

std::string TrainProgress::status(const train::StepMetrics& metrics) const {
  const double part = static_cast<double>(metrics.step) / static_cast<double>(steps_);
  const std::chrono::duration<double> elapsed = Clock::now() - start_;
  const double left =
      elapsed.count() / static_cast<double>(metrics.step - first_) * static_cast<double>(steps_ - metrics.step);
  std::string text = decimal(100 * part, 0) + " %  step " + std::to_string(metrics.step) + "/" +
                     std::to_string(steps_) + "  loss " + decimal(loss_, 4) + "  " + rate(metrics.tokens_per_second) +
                     " tokens/s  " + duration(left) + " left";
  if (skipped_ > 0) text += "  " + std::to_string(skipped_) + " skipped";
  return terminal_ ? bar(part) + "  " + text : text;
}

void TrainProgress::on_step(const train::StepMetrics& metrics) {
  skipped_ = metrics.skipped;
  if (std::isfinite(metrics.loss)) {
    loss_ = any_loss_ ? 0.9 * loss_ + 0.1 * metrics.loss : metrics.loss;
    any_loss_ = true;
  }
  const bool last = metrics.step == steps_;
  if (terminal_) {
    const auto now = Clock::now();
    if (!last && now - drawn_ < kRedraw) return;
    drawn_ = now;
    const int width = terminal_width();
    const std::string text = status(metrics);
    std::fprintf(stderr, "\r%s\x1b[K", (width > 1 ? cut(text, width - 1) : text).c_str());
    std::fflush(stderr);
  } else if (last || metrics.step % std::max<std::int64_t>(steps_ / kPlainLines, 1) == 0) {
    std::fprintf(stderr, "%s\n", status(metrics).c_str());
  }
}

void TrainProgress::on_evaluation(std::int64_t step, const train::Figures& figures) {
  figures_ = figures;
  clear_line();
  std::string text = "held out at step " + std::to_string(step) + ":";
  for (const auto& [name, value] : figures) {
    const bool whole = value == std::floor(value) && std::fabs(value) < 1e15;
    text += "  " + spaced(name) + " " + (whole ? with_commas(static_cast<long long>(value)) : decimal(value, 4));
  }
  std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace stepwell::cli
