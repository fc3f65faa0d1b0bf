// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

// The models' scalar functions on the C library: what the ops' references are written in. Kernels never use
// them.
namespace stepwell::ops::reference {

template <class T>
T sigmoid(T x) {
  const T e = std::exp(-std::abs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

template <class T>
T silu(T x) {
  return std::isinf(x) && x < 0 ? -T(0) : x * sigmoid(x);
}
template <class T>
T silu_derivative(T x) {
  const T s = sigmoid(x);
  return std::isinf(x) ? s : s * (1 + x * (1 - s));
}

template <class T>
T softplus(T x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}
template <class T>
T softplus_derivative(T x) {
  return x > 20 ? T(1) : sigmoid(x);
}

}  // namespace stepwell::ops::reference
