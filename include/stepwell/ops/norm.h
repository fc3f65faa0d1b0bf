// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/core/context.h"
#include "stepwell/core/tensor.h"

// Norms over the last dimension of contiguous F32 or F64 tensors [..., width], all of one dtype. Outputs may be inputs
// of the same shape. Throws Error for shapes and dtypes that do not fit.
// Order   sums over a group are 16-lane sums (simd/reduce-inl.h): the bits of a row depend on that row alone (X1) and
// are
//         the same on every instruction set with FMA (X7). Weight gradients add rows in increasing order inside blocks
//         of 256 rows, then the blocks in order (X3).
namespace stepwell::ops {

// Where the gate z enters, through its activation a. Before: rms_norm(x·a(z)). After: rms_norm(x)·a(z).
enum class GateOrder { Before, After };
enum class GateActivation { Silu, Sigmoid };

struct RmsNormInputs {
  Tensor x;                            // [..., width]
  Tensor z;                            // gate of x's shape, or undefined
  Tensor weight;                       // [width], or undefined
  double eps = 1e-5;                   // ≥ 0
  std::int64_t group = 0;              // entries normalised together, a divisor of width; 0: all of it
  GateOrder gate = GateOrder::Before;  // with z
  GateActivation activation = GateActivation::Silu;
};

// y = x / sqrt(mean(x²) + eps) · weight, per group; arXiv:1910.07467. A group of zeros gives zeros, for eps = 0 too.
void rms_norm(Context& ctx, const RmsNormInputs& in, const Tensor& y);

struct RmsNormGradients {  // outputs, overwritten; undefined ones are skipped
  Tensor x, z;             // [..., width]
  Tensor weight;           // [width]
};
void rms_norm_backward(Context& ctx, const RmsNormInputs& in, const Tensor& grad_y, const RmsNormGradients& out);

// y = x / Σx along the last dimension; a row whose sum is 0 gives zeros.
void sum_norm(Context& ctx, const Tensor& x, const Tensor& y);
void sum_norm_backward(Context& ctx, const Tensor& x, const Tensor& grad_y, const Tensor& grad_x);

struct LayerNormInputs {
  Tensor x;                      // [..., width]
  Tensor weight, bias;           // [width], or undefined
  double eps = 1e-5;             // ≥ 0
  std::int64_t group = 0;        // entries normalised together (a head), a divisor of width; 0: all of it
  bool one_plus_weight = false;  // scale by 1 + weight (xLSTM)
};

// y = (x − mean(x)) / sqrt(variance(x) + eps) · weight + bias, per group, the variance with 1/group; arXiv:1607.06450.
void layer_norm(Context& ctx, const LayerNormInputs& in, const Tensor& y);

struct LayerNormGradients {  // outputs, overwritten; undefined ones are skipped
  Tensor x;                  // [..., width]
  Tensor weight, bias;       // [width]
};
void layer_norm_backward(Context& ctx, const LayerNormInputs& in, const Tensor& grad_y, const LayerNormGradients& out);

}  // namespace stepwell::ops
