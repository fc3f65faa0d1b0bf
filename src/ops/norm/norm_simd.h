// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/ops/norm.h"

// Row kernels of the norms. float and double; rows are contiguous, outputs may be inputs.
namespace stepwell::ops {

template <class T>
struct RmsNormRows {
  const T *x, *z;   // [rows, groups·group]; z null: no gate
  const T* weight;  // [groups·group] or null
  T eps;
  std::int64_t group, groups;
  GateOrder gate;
  GateActivation activation;
};
template <class T>
struct RmsNormRowGradients {
  T *x, *z;    // [rows, groups·group] or null
  T* weight;   // [groups·group] or null; row by row added to what is there
  T* scratch;  // [2·group]
};
void rms_norm_rows(const RmsNormRows<float>& in, std::int64_t rows, float* y);
void rms_norm_rows(const RmsNormRows<double>& in, std::int64_t rows, double* y);
void rms_norm_backward_rows(const RmsNormRows<float>& in, const float* grad_y, std::int64_t rows,
                            const RmsNormRowGradients<float>& out);
void rms_norm_backward_rows(const RmsNormRows<double>& in, const double* grad_y, std::int64_t rows,
                            const RmsNormRowGradients<double>& out);

void sum_norm_rows(const float* x, std::int64_t rows, std::int64_t width, float* y);
void sum_norm_rows(const double* x, std::int64_t rows, std::int64_t width, double* y);
void sum_norm_backward_rows(const float* x, const float* grad_y, std::int64_t rows, std::int64_t width, float* grad_x);
void sum_norm_backward_rows(const double* x, const double* grad_y, std::int64_t rows, std::int64_t width,
                            double* grad_x);

template <class T>
struct LayerNormRows {
  const T* x;              // [rows, groups·group]
  const T *weight, *bias;  // [groups·group] or null
  T eps;
  std::int64_t group, groups;
  T offset;  // added to the weight
};
template <class T>
struct LayerNormRowGradients {
  T* x;              // [rows, groups·group] or null
  T *weight, *bias;  // [groups·group] or null; row by row added to what is there
  T* scratch;        // [2·group]
};
void layer_norm_rows(const LayerNormRows<float>& in, std::int64_t rows, float* y);
void layer_norm_rows(const LayerNormRows<double>& in, std::int64_t rows, double* y);
void layer_norm_backward_rows(const LayerNormRows<float>& in, const float* grad_y, std::int64_t rows,
                              const LayerNormRowGradients<float>& out);
void layer_norm_backward_rows(const LayerNormRows<double>& in, const double* grad_y, std::int64_t rows,
                              const LayerNormRowGradients<double>& out);

}  // namespace stepwell::ops
