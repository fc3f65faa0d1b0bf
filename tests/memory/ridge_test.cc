// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/ridge.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"

#include "tests/autograd/random_tensor.h"

namespace stepwell::memory {
namespace {

TEST(Ridge, FindsTheMatrixBehindExactData) {
  const Tensor X = random_tensor({50, 7}, 1, -1, 1, DType::F32), W = random_tensor({3, 7}, 2, -1, 1, DType::F32);
  const Tensor Y = Tensor::empty({50, 3});
  for (std::int64_t i = 0; i < 50; ++i) {
    for (std::int64_t o = 0; o < 3; ++o) {
      double sum = 0;
      for (std::int64_t j = 0; j < 7; ++j) sum += X.at(i * 7 + j) * W.at(o * 7 + j);
      Y.data<float>()[i * 3 + o] = static_cast<float>(sum);
    }
  }
  const Tensor found = ridge_regression(X, Y, 0);
  for (std::int64_t i = 0; i < 21; ++i) EXPECT_NEAR(found.at(i), W.at(i), 1e-6);
}

// The gradient of what it minimises is zero: Xᵀ(XWᵀ − Y) + penalty · trace(XᵀX)/in · Wᵀ = 0.
TEST(Ridge, IsTheMinimumOfItsDefinition) {
  const Tensor X = random_tensor({20, 5}, 1, -1, 1, DType::F32), Y = random_tensor({20, 2}, 2, -1, 1, DType::F32);
  const double penalty = 0.3;
  const Tensor W = ridge_regression(X, Y, penalty);
  double trace = 0;
  for (std::int64_t i = 0; i < 100; ++i) trace += X.at(i) * X.at(i);
  for (std::int64_t o = 0; o < 2; ++o) {
    for (std::int64_t j = 0; j < 5; ++j) {
      double gradient = penalty * trace / 5 * W.at(o * 5 + j);
      for (std::int64_t i = 0; i < 20; ++i) {
        double error = -Y.at(i * 2 + o);
        for (std::int64_t k = 0; k < 5; ++k) error += X.at(i * 5 + k) * W.at(o * 5 + k);
        gradient += X.at(i * 5 + j) * error;
      }
      EXPECT_NEAR(gradient, 0, 1e-5);
    }
  }
}

TEST(Ridge, FewRowsNeedAPenalty) {
  const Tensor X = random_tensor({2, 5}, 1, -1, 1, DType::F32), Y = random_tensor({2, 1}, 2, -1, 1, DType::F32);
  EXPECT_THROW(ridge_regression(Tensor::zeros({2, 5}), Y, 0), Error);
  EXPECT_NO_THROW(ridge_regression(X, Y, 1e-3));
  X.data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(ridge_regression(X, Y, 1e-3), Error);
}

}  // namespace
}  // namespace stepwell::memory
