// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "stepwell/core/context.h"
#include "stepwell/core/tensor.h"

// Self-attention inside windows of token rows, each window pooled to one row: what a set encoder does to its elements.
// Windows may overlap, so that every prefix of a sequence is encoded without computing a token's projections twice.
namespace stepwell::ops {

// Rows begin … begin + length − 1; the last is the newest, of age 0.
struct RowWindow {
  std::int64_t begin = 0, length = 0;
};

// F32 or F64, all of one dtype, contiguous.
struct PooledAttentionInputs {
  Tensor e, q, k, v;                  // [L, m]
  Tensor age_e, age_q, age_k, age_v;  // [A, m]: added to the rows of e, q, k, v by age in their window; all or none
  Tensor weight;           // [A], > 0: what a row of each age counts in the pooled mean; undefined: all alike
  std::int64_t heads = 1;  // a divisor of m
};

// For each window, of w rows:
//   P = row softmax(q kᵀ / sqrt(m / heads)) in every head;   z = Σ_i a_i (e_i + Σ_j P_ij v_j),   Σ a = 1
//
// Shapes  z [windows, m], overwritten.
// Range   1 ≤ length ≤ A (if there are tables by age); rows inside [0, L). Throws Error otherwise.
// Cost    w² m multiply-adds and w² exponentials a window.
// Order   scores are chains of fused multiply-adds over the head's width; softmax sums are 16-lane sums; sums over the
//         rows of a window run from the oldest to the newest: z depends on its window alone (X1), on every instruction
//         set with FMA alike (X7).
// Source  arXiv:1706.03762 for the attention; pooling before the product with v, which is linear, saves it.
void pooled_attention(Context& ctx, const PooledAttentionInputs& in, std::span<const RowWindow> windows,
                      const Tensor& z);

// Gradients for grad_z [windows, m]; outputs are overwritten, all of them needed but age_*, which go with the inputs
// (age_e has none). Windows must be in order of their first rows.
// Cost    four times the forward pass.
// Order   gradients of a row are added window by window, those by age in at most 16 parts cut by the windows alone
//         (X3).
struct PooledAttentionGradients {
  Tensor e, q, k, v;           // [L, m]
  Tensor age_q, age_k, age_v;  // [A, m]
};
void pooled_attention_backward(Context& ctx, const PooledAttentionInputs& in, std::span<const RowWindow> windows,
                               const Tensor& grad_z, const PooledAttentionGradients& out);

}  // namespace stepwell::ops
