// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Row kernels of softmax and cross entropy. float and double; rows are contiguous, outputs may be inputs.
namespace stepwell::ops {

void softmax_rows(const float* x, std::int64_t rows, std::int64_t width, float* y);
void softmax_rows(const double* x, std::int64_t rows, std::int64_t width, double* y);
void softmax_backward_rows(const float* y, const float* grad_y, std::int64_t rows, std::int64_t width, float* grad_x);
void softmax_backward_rows(const double* y, const double* grad_y, std::int64_t rows, std::int64_t width,
                           double* grad_x);

// log_sum = log Σ exp(x), loss = log_sum − x[target].
void cross_entropy_row(const float* x, std::int64_t width, std::int64_t target, float* log_sum, float* loss);
void cross_entropy_row(const double* x, std::int64_t width, std::int64_t target, double* log_sum, double* loss);
// grad_x = (exp(x − log_sum) − onehot(target))·factor.
void cross_entropy_backward_row(const float* x, std::int64_t width, std::int64_t target, float log_sum, float factor,
                                float* grad_x);
void cross_entropy_backward_row(const double* x, std::int64_t width, std::int64_t target, double log_sum, double factor,
                                double* grad_x);

}  // namespace stepwell::ops
