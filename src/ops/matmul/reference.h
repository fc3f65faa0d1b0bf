// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "stepwell/core/flush_to_zero.h"
#include "stepwell/ops/matmul.h"

// The matrix product as plain loops, in the order of stepwell/ops/matmul.h: what the kernels are measured against.
namespace stepwell::ops::reference {

template <class T>
void matmul(Product product, View<const T, 2> a, View<const T, 2> b, View<T, 2> c, MatmulOptions<T> options = {}) {
  constexpr std::int64_t kBlock = 256;
  FlushToZero mode;
  const std::int64_t K = product == Product::AtB ? a.extent[0] : a.extent[1];
  for (std::int64_t m = 0; m < c.extent[0]; ++m) {
    for (std::int64_t n = 0; n < c.extent[1]; ++n) {
      T total = 0;
      for (std::int64_t start = 0; start < K; start += kBlock) {
        T chain = 0;
        for (std::int64_t k = start; k < std::min(start + kBlock, K); ++k) {
          chain =
              std::fma(product == Product::AtB ? a(k, m) : a(m, k), product == Product::ABt ? b(n, k) : b(k, n), chain);
        }
        total = start == 0 ? chain : total + chain;
      }
      if (options.bias) total += options.bias[n];
      c(m, n) = options.accumulate ? c(m, n) + total : total;
    }
  }
}

}  // namespace stepwell::ops::reference
