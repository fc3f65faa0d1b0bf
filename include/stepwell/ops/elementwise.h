// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/core/context.h"
#include "stepwell/core/tensor.h"

// Elementwise ops, fills and plain sums on contiguous F32 or F64 tensors of any size, 0 included; all arguments
// of one dtype. An output may be an input. Throws Error for shapes and dtypes that do not fit. Bits depend neither on
// threads nor on the other elements, and are the same on every instruction set with FMA (X1, X3, X7).
namespace stepwell::ops {

// Functions of one number; definitions, errors and special values in src/simd/math-inl.h.
enum class Unary {
  Exp,
  Expm1,
  DecayRate,  // −exp(x), but at least −(largest finite number)
  Log,
  Log1p,
  Tanh,
  Sigmoid,
  LogSigmoid,
  Silu,
  Softplus,    // softplus: x above 20
  Relu,        // max(x, 0), slope 0 at 0
  EluPlusOne,  // x + 1 above 0, exp(x) below: 1 + ELU
  GeluTanh,
  GeluErf,
  Erf,
  Sin,
  Cos,
};

// y = op(x).
void unary(Context& ctx, Unary op, const Tensor& x, const Tensor& y);
// grad_x = op'(x)·grad_y.
void unary_backward(Context& ctx, Unary op, const Tensor& x, const Tensor& grad_y, const Tensor& grad_x);

// out has a's shape; b has it too, or is a trailing part of it (a bias) and is broadcast over the leading dimensions.
void add(Context& ctx, const Tensor& a, const Tensor& b, const Tensor& out);
void sub(Context& ctx, const Tensor& a, const Tensor& b, const Tensor& out);
void mul(Context& ctx, const Tensor& a, const Tensor& b, const Tensor& out);

// y = x between low and high, else the nearer of them; NaN stays NaN. low ≤ high, infinite ones allowed.
void clamp(Context& ctx, const Tensor& x, double low, double high, const Tensor& y);
// grad_x = grad_y where low ≤ x ≤ high, else 0.
void clamp_backward(Context& ctx, const Tensor& x, double low, double high, const Tensor& grad_y, const Tensor& grad_x);

// out = factor·x.
void scale(Context& ctx, const Tensor& x, double factor, const Tensor& out);
// out += factor·x, one fused multiply-add per element.
void accumulate(Context& ctx, const Tensor& x, double factor, const Tensor& out);

// Adjoint of the broadcast: out [trailing part of x's shape] = Σ over the leading dimensions of x.
// Order   rows are added in increasing order inside blocks of 256 rows; block sums are added in increasing order.
void column_sums(Context& ctx, const Tensor& x, const Tensor& out);

// Sum and mean of all elements into out, a tensor of one element; the mean of nothing is 0.
// Order   16-lane sums (simd/reduce-inl.h) of blocks of 4,096 elements; the block sums are summed the same way.
void sum(Context& ctx, const Tensor& x, const Tensor& out);
void mean(Context& ctx, const Tensor& x, const Tensor& out);

// Every element = value.
void fill(Context& ctx, const Tensor& x, double value);

}  // namespace stepwell::ops
