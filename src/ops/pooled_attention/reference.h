// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "stepwell/ops/pooled_attention.h"

// What pooled_attention computes, in plain loops: the yardstick of its tests.
namespace stepwell::ops::reference {

// F64 inputs and z.
inline void pooled_attention(const PooledAttentionInputs& in, std::span<const RowWindow> windows, const Tensor& z) {
  const std::int64_t m = in.e.size(1), width = m / in.heads;
  for (std::size_t n = 0; n < windows.size(); ++n) {
    const auto [begin, w] = windows[n];
    const auto row = [&, first = begin, count = w](const Tensor& t, const Tensor& by_age, std::int64_t i,
                                                   std::int64_t c) {
      return t.at((first + i) * m + c) + (by_age.defined() ? by_age.at((count - 1 - i) * m + c) : 0.0);
    };
    double total = 0;
    std::vector<double> a(static_cast<std::size_t>(w));
    for (std::int64_t i = 0; i < w; ++i) {
      a[static_cast<std::size_t>(i)] = in.weight.defined() ? in.weight.at(w - 1 - i) : 1.0;
      total += a[static_cast<std::size_t>(i)];
    }
    for (std::int64_t c = 0; c < m; ++c) z.data<double>()[static_cast<std::int64_t>(n) * m + c] = 0;
    for (std::int64_t h = 0; h < in.heads; ++h) {
      for (std::int64_t i = 0; i < w; ++i) {
        std::vector<double> p(static_cast<std::size_t>(w));
        double sum = 0;
        for (std::int64_t j = 0; j < w; ++j) {
          double score = 0;
          for (std::int64_t c = h * width; c < (h + 1) * width; ++c)
            score += row(in.q, in.age_q, i, c) * row(in.k, in.age_k, j, c);
          sum += p[static_cast<std::size_t>(j)] = std::exp(score / std::sqrt(static_cast<double>(width)));
        }
        for (std::int64_t c = h * width; c < (h + 1) * width; ++c) {
          double value = row(in.e, in.age_e, i, c);
          for (std::int64_t j = 0; j < w; ++j)
            value += p[static_cast<std::size_t>(j)] / sum * row(in.v, in.age_v, j, c);
          z.data<double>()[static_cast<std::int64_t>(n) * m + c] += a[static_cast<std::size_t>(i)] / total * value;
        }
      }
    }
  }
}

}  // namespace stepwell::ops::reference
