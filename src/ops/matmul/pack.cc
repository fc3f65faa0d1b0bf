// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/matmul/block_simd.h"

namespace stepwell::ops {

namespace {

template <class T>
void pack_panels_t(const T* source, std::int64_t k_stride, std::int64_t n_stride, std::int64_t K, std::int64_t N,
                   T* panels, std::int64_t panel) {
  for (std::int64_t n0 = 0; n0 < N; n0 += kPanel) {
    const std::int64_t columns = std::min(kPanel, N - n0);
    T* out = panels + n0 / kPanel * panel;
    for (std::int64_t k = 0; k < K; ++k) {
      const T* row = source + k * k_stride + n0 * n_stride;
      for (std::int64_t n = 0; n < columns; ++n) out[k * kPanel + n] = row[n * n_stride];
      for (std::int64_t n = columns; n < kPanel; ++n) out[k * kPanel + n] = 0;
    }
  }
}

}  // namespace

void pack_panels(const float* source, std::int64_t k_stride, std::int64_t n_stride, std::int64_t K, std::int64_t N,
                 float* panels, std::int64_t panel) {
  pack_panels_t(source, k_stride, n_stride, K, N, panels, panel);
}
void pack_panels(const double* source, std::int64_t k_stride, std::int64_t n_stride, std::int64_t K, std::int64_t N,
                 double* panels, std::int64_t panel) {
  pack_panels_t(source, k_stride, n_stride, K, N, panels, panel);
}

}  // namespace stepwell::ops
