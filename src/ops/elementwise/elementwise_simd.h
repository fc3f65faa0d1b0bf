// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/ops/elementwise.h"

// Array kernels; n ≥ 0, contiguous, an output may be an input. float and double.
namespace stepwell::ops {

enum class Binary { Add, Sub, Mul };

void unary_array(Unary op, const float* x, float* y, std::int64_t n);
void unary_array(Unary op, const double* x, double* y, std::int64_t n);
void unary_backward_array(Unary op, const float* x, const float* grad_y, float* grad_x, std::int64_t n);
void unary_backward_array(Unary op, const double* x, const double* grad_y, double* grad_x, std::int64_t n);

// a, out [rows, width]; b [width], the same for every row.
void binary_rows(Binary op, const float* a, const float* b, float* out, std::int64_t rows, std::int64_t width);
void binary_rows(Binary op, const double* a, const double* b, double* out, std::int64_t rows, std::int64_t width);
template <class T>
void add_array(const T* a, const T* b, T* out, std::int64_t n) {
  binary_rows(Binary::Add, a, b, out, 1, n);
}

void clamp_array(const float* x, float low, float high, float* y, std::int64_t n);
void clamp_array(const double* x, double low, double high, double* y, std::int64_t n);
void clamp_backward_array(const float* x, float low, float high, const float* grad_y, float* grad_x, std::int64_t n);
void clamp_backward_array(const double* x, double low, double high, const double* grad_y, double* grad_x,
                          std::int64_t n);

void scale_array(const float* x, float factor, float* out, std::int64_t n);
void scale_array(const double* x, double factor, double* out, std::int64_t n);
void accumulate_array(const float* x, float factor, float* out, std::int64_t n);  // out = fma(factor, x, out)
void accumulate_array(const double* x, double factor, double* out, std::int64_t n);

// out[c] = Σ x[r·stride + c] over r = 0 … rows−1 in order, from 0.
void column_sums_array(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t width, float* out);
void column_sums_array(const double* x, std::int64_t stride, std::int64_t rows, std::int64_t width, double* out);

float sum_array(const float* x, std::int64_t n);  // 16 lanes
double sum_array(const double* x, std::int64_t n);

}  // namespace stepwell::ops
