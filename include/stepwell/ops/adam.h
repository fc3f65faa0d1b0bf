// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/core/context.h"
#include "stepwell/core/tensor.h"

namespace stepwell::ops {

// Σ x², in double: 8 interleaved sums per block of 2^15 elements, block sums added in order, so that the bits depend on
// the values alone. Not finite if any element is not.
// Shapes  x contiguous, F32 or F64, any shape.
double sum_of_squares(Context& ctx, const Tensor& x);

// The scalars of one Adam step, in double; the kernel rounds each to the tensors' type once.
struct AdamScalars {
  double gradient_scale = 1;  // on every gradient (clipping)
  double beta1 = 0.9, beta2 = 0.999;
  double rate = 0;        // lr / (1 − β1^t)
  double root_scale = 1;  // 1 / √(1 − β2^t)
  double eps = 1e-8;
  double keep = 1;  // 1 − lr · weight decay
};

// One step of Adam (arXiv:1412.6980) with decoupled weight decay (arXiv:1711.05101):
//   g' = scale·g;  m = β1·m + (1−β1)·g';  v = β2·v + (1−β2)·g'²;  p = keep·p − rate·m / (√v·root_scale + eps)
// Shapes  all four contiguous, of one shape and dtype (F32 or F64); p, m, v in/out.
// Order   elementwise, products and sums rounded one by one: the same bits on every instruction set and thread count.
void adam_step(Context& ctx, const AdamScalars& scalars, const Tensor& gradient, const Tensor& parameter,
               const Tensor& m, const Tensor& v);

}  // namespace stepwell::ops
