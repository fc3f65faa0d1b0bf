// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace stepwell::ops {

// One head of one sequence. Rows of token t lie `stride` apart; S is a state [K, padded], padded = V rounded up to
// whole sixteens, zeros beyond V.
template <class T>
struct AttentionHead {
  std::int64_t tokens, K, V;
  const T *q, *k, *v;
  std::int64_t q_stride, k_stride, v_stride;
  T decay, scale;
};

inline std::int64_t padded_columns(std::int64_t V) { return (V + 15) / 16 * 16; }

// y[t] = scale·qᵀS after S = decay·S + k vᵀ; S in/out. Each output is one chain of fused multiply-adds over the
// rows of S.
void attention_forward(const AttentionHead<float>& head, float* S, float* y, std::int64_t y_stride);
void attention_forward(const AttentionHead<double>& head, double* S, double* y, std::int64_t y_stride);

// The gradients of q: S runs forwards once more. Sums over columns are 16 lanes, folded 8, 4, 2, 1.
void attention_grad_q(const AttentionHead<float>& head, float* S, const float* grad_y, std::int64_t grad_y_stride,
                      float* q, std::int64_t q_stride);
void attention_grad_q(const AttentionHead<double>& head, double* S, const double* grad_y, std::int64_t grad_y_stride,
                      double* q, std::int64_t q_stride);

// The gradients of k and v: G, the gradient of the state after the last token, runs backwards to that of the state
// before the first.
template <class T>
struct AttentionGradients {
  const T* grad_y;
  T *k, *v;
  std::int64_t grad_y_stride, k_stride, v_stride;
};
void attention_grad_kv(const AttentionHead<float>& head, float* G, const AttentionGradients<float>& out);
void attention_grad_kv(const AttentionHead<double>& head, double* G, const AttentionGradients<double>& out);

}  // namespace stepwell::ops
