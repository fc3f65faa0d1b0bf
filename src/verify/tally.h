// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "stepwell/core/tensor.h"
#include "stepwell/verify/report.h"

namespace stepwell::verify {

// Tolerances of docs/numerics.md for a form against its reference, relative to the largest expected value.
inline constexpr double kRelativeF32 = 2e-5, kRelativeF64 = 1e-11;

// What one promise's measurements add up to, over all variants of a subject.
class Tally {
 public:
  // Values that must have the same bits.
  void same_bits(const Tensor& got, const Tensor& expected, const std::string& what);
  // max|got − expected| ≤ relative·max|expected| + absolute.
  void within(const Tensor& got, const Tensor& expected, double relative, double absolute, const std::string& what);
  // A figure against its bound, for `count` values.
  void bounded(double figure, double bound, std::int64_t count, const std::string& what);
  // Something that must hold.
  void require(bool holds, const std::string& what);
  // Why nothing could be measured; counts only if nothing was.
  void not_run(std::string why) { not_run_ = std::move(why); }

  Check finish(std::string subject, std::string promise) const;

 private:
  void fail_once(const std::string& why);
  std::int64_t compared_ = 0;               // values of both kinds
  std::int64_t exact_ = 0, differing_ = 0;  // those that must have the same bits
  bool toleranced_ = false, failed_ = false;
  double worst_ = 0;  // largest |Δ| / bound
  std::string worst_at_, failure_, not_run_;
};

}  // namespace stepwell::verify
