// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/view.h"

namespace stepwell::ops::testing {

// An array [I, J, K] whose rows i lie `pitch` elements apart; what lies between them is NaN.
template <class T>
class Rows {
 public:
  Rows() = default;
  Rows(std::int64_t I, std::int64_t J, std::int64_t K = 1, std::int64_t gap = 3)
      : I_(I),
        J_(J),
        K_(K),
        pitch_(J * K + gap),
        data_(static_cast<std::size_t>(I * pitch_ + 64), std::numeric_limits<T>::quiet_NaN()) {}

  template <class F>
  void fill(F value) {
    for (std::int64_t i = 0; i < I_; ++i) {
      for (std::int64_t j = 0; j < J_ * K_; ++j) data_[i * pitch_ + j] = static_cast<T>(value(i * J_ * K_ + j));
    }
  }
  std::int64_t size() const { return I_ * J_ * K_; }
  T& operator[](std::int64_t flat) { return data_[flat / (J_ * K_) * pitch_ + flat % (J_ * K_)]; }
  const T& operator[](std::int64_t flat) const { return const_cast<Rows&>(*this)[flat]; }
  T* data() { return data_.data(); }

  // Copy of rows first … last−1, in memory of its own.
  Rows rows(std::int64_t first, std::int64_t last) const {
    if (data_.empty()) return {};
    Rows part(last - first, J_, K_, pitch_ - J_ * K_);
    for (std::int64_t i = 0; i < part.size(); ++i) part[i] = (*this)[first * J_ * K_ + i];
    return part;
  }
  void set_rows(std::int64_t first, const Rows& part) {
    for (std::int64_t i = 0; i < part.size(); ++i) (*this)[first * J_ * K_ + i] = part[i];
  }

  View<T, 2> view2() { return {data_.data(), {I_, J_}, {pitch_, 1}}; }
  View<T, 3> view3() { return {data_.data(), {I_, J_, K_}, {pitch_, K_, 1}}; }
  explicit operator bool() const { return !data_.empty(); }

  Rows with_gap(std::int64_t gap) const {
    Rows other(I_, J_, K_, gap);
    for (std::int64_t i = 0; i < size(); ++i) other[i] = (*this)[i];
    return other;
  }
  template <class U>
  Rows<U> as() const {
    if (data_.empty()) return {};
    Rows<U> other(I_, J_, K_, pitch_ - J_ * K_);
    for (std::int64_t i = 0; i < size(); ++i) other[i] = static_cast<U>((*this)[i]);
    return other;
  }

 private:
  std::int64_t I_ = 0, J_ = 0, K_ = 0, pitch_ = 0;
  std::vector<T> data_;
};

// max|Δ| ≤ tolerance·max|expected|, and no NaN. What is below the smallest normal number of T counts as 0.
template <class T, class U>
void expect_near(const Rows<T>& actual, const Rows<U>& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0, worst = 0;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    const double error = std::abs(static_cast<double>(actual[i]) - static_cast<double>(expected[i]));
    if (!(error <= worst)) {
      worst = error;
      at = i;
    }
  }
  EXPECT_LE(worst, tolerance * largest + static_cast<double>(std::numeric_limits<T>::min()))
      << what << ": element " << at << " is " << actual[at] << ", expected " << expected[at];
}

// Equal in every bit.
template <class T>
void expect_same_bits(const Rows<T>& actual, const Rows<T>& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(std::memcmp(&actual[i], &expected[i], sizeof(T)), 0)
        << what << ": element " << i << " is " << actual[i] << ", expected " << expected[i];
  }
}

// Central differences of loss() over every entry of `input`, changed in place.
template <class Loss>
void expect_finite_differences(const char* name, Rows<double>& input, const Rows<double>& gradient, Loss loss) {
  double largest = 0, worst = 0;
  for (std::int64_t i = 0; i < input.size(); ++i) largest = std::max(largest, std::abs(gradient[i]));
  for (std::int64_t i = 0; i < input.size(); ++i) {
    const double x = input[i], step = 1e-6 * std::max(1.0, std::abs(x));
    input[i] = x + step;
    const double above = loss();
    input[i] = x - step;
    const double below = loss();
    input[i] = x;
    const double error = std::abs((above - below) / (2 * step) - gradient[i]);
    worst = error <= worst ? worst : error;  // keeps a NaN
  }
  EXPECT_LE(worst, 1e-6 * largest + 1e-9 * std::max(1.0, std::abs(loss()))) << "gradient of " << name;
}

}  // namespace stepwell::ops::testing
