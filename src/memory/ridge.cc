// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/ridge.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace stepwell::memory {

namespace {

using Index = std::int64_t;

// A row-major matrix of doubles.
struct Matrix {
  Matrix(Index rows, Index columns) : columns(columns), values(static_cast<std::size_t>(rows * columns)) {}
  double& operator()(Index r, Index c) { return values[static_cast<std::size_t>(r * columns + c)]; }
  Index columns;
  std::vector<double> values;
};

// Σ_i a_i b_iᵀ over rows.
Matrix product(const Tensor& a, const Tensor& b) {
  const Index n = a.size(0), p = a.size(1), q = b.size(1);
  const float *x = a.data<float>(), *y = b.data<float>();
  Matrix sum(p, q);
  for (Index i = 0; i < n; ++i) {
    for (Index r = 0; r < p; ++r) {
      const double factor = x[i * p + r];
      for (Index c = 0; c < q; ++c) sum(r, c) += factor * static_cast<double>(y[i * q + c]);
    }
  }
  return sum;
}

// L of L Lᵀ = a into a's lower triangle.
void factor(Matrix& a) {
  const Index n = a.columns;
  for (Index c = 0; c < n; ++c) {
    for (Index r = c; r < n; ++r) {
      double sum = a(r, c);
      for (Index k = 0; k < c; ++k) sum -= a(r, k) * a(c, k);
      if (r > c) {
        a(r, c) = sum / a(c, c);
      } else {
        STEPWELL_CHECK(sum > 0 && std::isfinite(sum), "ridge_regression",
                       "pivot " + std::to_string(c) + " is " + std::to_string(sum) +
                           ", expected finite rows and a penalty above 0");
        a(c, c) = std::sqrt(sum);
      }
    }
  }
}

// Solves L Lᵀ X = b in b's place.
void solve(Matrix& L, Matrix& b) {
  const Index n = L.columns;
  for (Index j = 0; j < b.columns; ++j) {
    for (Index r = 0; r < n; ++r) {
      double sum = b(r, j);
      for (Index k = 0; k < r; ++k) sum -= L(r, k) * b(k, j);
      b(r, j) = sum / L(r, r);
    }
    for (Index r = n - 1; r >= 0; --r) {
      double sum = b(r, j);
      for (Index k = r + 1; k < n; ++k) sum -= L(k, r) * b(k, j);
      b(r, j) = sum / L(r, r);
    }
  }
}

}  // namespace

Tensor ridge_regression(const Tensor& X, const Tensor& Y, double penalty) {
  STEPWELL_CHECK(X.defined() && Y.defined() && X.rank() == 2 && Y.rank() == 2 && X.size(0) == Y.size(0) &&
                     X.is_contiguous() && Y.is_contiguous() && penalty >= 0,
                 "ridge_regression",
                 "X " + X.shape().to_string() + ", Y " + Y.shape().to_string() + ", penalty " +
                     std::to_string(penalty) + "; expected [n, in], [n, out] and at least 0");
  const Index in = X.size(1), out = Y.size(1);
  Matrix normal = product(X, X), right = product(X, Y);
  double trace = 0;
  for (Index i = 0; i < in; ++i) trace += normal(i, i);
  for (Index i = 0; i < in; ++i) normal(i, i) += penalty * trace / static_cast<double>(in);
  factor(normal);
  solve(normal, right);
  const Tensor W = Tensor::empty({out, in});
  for (Index r = 0; r < out; ++r) {
    for (Index c = 0; c < in; ++c) W.data<float>()[r * in + c] = static_cast<float>(right(c, r));
  }
  return W;
}

}  // namespace stepwell::memory
