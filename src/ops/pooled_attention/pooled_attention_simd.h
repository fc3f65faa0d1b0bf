// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The kernels under pooled_attention: one window, forward and backward.
namespace stepwell::ops {

// One window. Row i of e, q, k, v at i·width; tables by age at age·width, or null.
template <class T>
struct AttentionWindow {
  std::int64_t length = 0, width = 0, heads = 1;
  const T *e = nullptr, *q = nullptr, *k = nullptr, *v = nullptr;
  const T *age_e = nullptr, *age_q = nullptr, *age_k = nullptr, *age_v = nullptr;
  const T* weight = nullptr;  // by age, or null
  T* scratch = nullptr;       // window_scratch() numbers, aligned as an Arena's
};

// Added to. Rows and tables as those of the window; tables may be null.
template <class T>
struct AttentionWindowGradients {
  T *e = nullptr, *q = nullptr, *k = nullptr, *v = nullptr;
  T *age_q = nullptr, *age_k = nullptr, *age_v = nullptr;
};

// Scratch of a window of `length` rows.
constexpr std::int64_t window_scratch(std::int64_t length, std::int64_t width, std::int64_t heads) {
  const std::int64_t rows = (length + 15) / 16 * 16, head = (width / heads + 15) / 16 * 16;
  return 6 * rows * head + rows * rows + 4 * rows;
}

// z [width], overwritten.
void pool_window(const AttentionWindow<float>& window, float* z);
void pool_window(const AttentionWindow<double>& window, double* z);
void pool_window_backward(const AttentionWindow<float>& window, const float* grad_z,
                          const AttentionWindowGradients<float>& out);
void pool_window_backward(const AttentionWindow<double>& window, const double* grad_z,
                          const AttentionWindowGradients<double>& out);

}  // namespace stepwell::ops
