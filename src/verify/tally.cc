// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "verify/tally.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace stepwell::verify {

void Tally::fail_once(const std::string& why) {
  if (!failed_) failure_ = why;
  failed_ = true;
}

void Tally::same_bits(const Tensor& got, const Tensor& expected, const std::string& what) {
  if (!(got.shape() == expected.shape()) || got.dtype() != expected.dtype()) {
    ++exact_;
    ++differing_;
    return fail_once(
        fmt::format("{}: shape {} instead of {}", what, got.shape().to_string(), expected.shape().to_string()));
  }
  compared_ += got.numel();
  exact_ += got.numel();
  if (got.same_bits(expected)) return;
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const double a = got.at(i), b = expected.at(i);
    if (std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b)) continue;
    ++differing_;
    fail_once(fmt::format("{}: element {} of {} is {:.9g} instead of {:.9g}", what, i, got.shape().to_string(), a, b));
  }
}

void Tally::within(const Tensor& got, const Tensor& expected, double relative, double absolute,
                   const std::string& what) {
  toleranced_ = true;
  if (!(got.shape() == expected.shape())) {
    return fail_once(
        fmt::format("{}: shape {} instead of {}", what, got.shape().to_string(), expected.shape().to_string()));
  }
  double largest = 0, worst = 0;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const double b = expected.at(i), difference = std::fabs(got.at(i) - b);
    largest = std::fmax(largest, std::fabs(b));
    if (!(difference <= worst)) {  // a NaN counts as worst
      worst = std::isnan(difference) ? INFINITY : difference;
      at = i;
    }
  }
  const double bound = relative * largest + absolute;
  bounded(worst, bound, got.numel(), fmt::format("{}[{}]", what, at));
}

void Tally::bounded(double figure, double bound, std::int64_t count, const std::string& what) {
  toleranced_ = true;
  compared_ += count;
  const double share = figure == 0 ? 0 : figure / bound;
  if (share > worst_ || worst_at_.empty()) {
    worst_ = share;
    worst_at_ = fmt::format("{:.2g} of {:.2g} at {}", figure, bound, what);
  }
  if (!(figure <= bound)) fail_once(fmt::format("{:.3g} beyond the bound {:.3g} at {}", figure, bound, what));
}

void Tally::require(bool holds, const std::string& what) {
  ++compared_;
  ++exact_;
  if (!holds) {
    ++differing_;
    fail_once(what);
  }
}

Check Tally::finish(std::string subject, std::string promise) const {
  Check check{std::move(subject), std::move(promise), Outcome::NotRun, {}, {}, compared_};
  if (compared_ == 0 && !failed_) {
    check.reason = not_run_.empty() ? "nothing to compare" : not_run_;
    return check;
  }
  check.outcome = failed_ ? Outcome::Fail : Outcome::Pass;
  if (exact_ > 0) check.figure = fmt::format("{} of {} values differ", differing_, exact_);
  if (toleranced_) check.figure += (exact_ > 0 ? "; " : "") + worst_at_;
  check.reason = failure_;
  return check;
}

}  // namespace stepwell::verify
