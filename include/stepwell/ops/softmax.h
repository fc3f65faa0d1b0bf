// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/core/context.h"
#include "stepwell/core/tensor.h"

// Softmax and cross entropy over the last dimension of contiguous F32 or F64 tensors, all of one dtype. Throws Error
// for shapes and dtypes that do not fit. Order   the largest entry is subtracted; sums are 16-lane sums
// (simd/reduce-inl.h): the bits of a row depend on that row
//         alone (X1) and are the same on every instruction set with FMA (X7).
namespace stepwell::ops {

// y = exp(x − max x) / Σ exp(x − max x), per row; −inf gives 0 (a row of nothing else: NaN). y may be x.
void softmax(Context& ctx, const Tensor& x, const Tensor& y);
// grad_x = y·(grad_y − Σ grad_y·y). grad_x may be grad_y.
void softmax_backward(Context& ctx, const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);

// Mean over rows of −log softmax(logits)[target], rows whose target is `ignore` left out; 0 if none is left.
// Shapes  logits [rows, vocab], targets I64 [rows], each in [0, vocab) or `ignore` (Error otherwise); outputs
//         log_sums [rows] = log Σ exp(logits) for the backward pass, and loss, one element.
// Order   row losses are added as in ops::sum.
void cross_entropy(Context& ctx, const Tensor& logits, const Tensor& targets, std::int64_t ignore,
                   const Tensor& log_sums, const Tensor& loss);
// grad_logits = (softmax(logits) − onehot(target))·grad_loss/count; rows left out get zeros. May be logits' own memory.
void cross_entropy_backward(Context& ctx, const Tensor& logits, const Tensor& targets, std::int64_t ignore,
                            const Tensor& log_sums, const Tensor& grad_loss, const Tensor& grad_logits);

}  // namespace stepwell::ops
