// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "stepwell/core/flush_to_zero.h"
#include "stepwell/ops/linear_attention.h"

// Linear attention and its adjoint as plain loops. Shapes and meaning as in stepwell/ops/linear_attention.h.
namespace stepwell::ops::reference {

template <class T>
void linear_attention(const LinearAttentionInputs<T>& in, const Segments& segments, View<T, 3> state, View<T, 3> y) {
  FlushToZero mode;
  const std::int64_t H = in.q.extent[1], K = in.q.extent[2], V = in.v.extent[2];
  for (std::int64_t s = 0; s < segments.count(); ++s) {
    for (std::int64_t t = segments.begin(s); t < segments.end(s); ++t) {
      for (std::int64_t head = 0; head < H; ++head) {
        const T decay = in.decay ? in.decay[head] : T(1);
        for (std::int64_t j = 0; j < V; ++j) {
          T sum = 0;
          for (std::int64_t i = 0; i < K; ++i) {
            T& cell = state(s * H + head, i, j);
            cell = decay * cell + in.k(t, head, i) * in.v(t, head, j);
            sum += in.q(t, head, i) * cell;
          }
          y(t, head, j) = in.scale * sum;
        }
      }
    }
  }
}

template <class T>
void linear_attention_backward(const LinearAttentionInputs<T>& in, const Segments& segments, View<const T, 3> state,
                               View<const T, 3> grad_y, View<const T, 3> grad_state,
                               const LinearAttentionGradients<T>& out) {
  FlushToZero mode;
  const std::int64_t H = in.q.extent[1], K = in.q.extent[2], V = in.v.extent[2];
  for (std::int64_t s = 0; s < segments.count(); ++s) {
    for (std::int64_t head = 0; head < H; ++head) {
      const std::int64_t row = s * H + head;
      const T decay = in.decay ? in.decay[head] : T(1);
      std::vector<T> S(static_cast<std::size_t>(K * V)), G(S.size());
      for (std::int64_t i = 0; i < K * V; ++i) {
        S[i] = state ? state(row, i / V, i % V) : T(0);
        G[i] = grad_state ? grad_state(row, i / V, i % V) : T(0);
      }
      // g_q needs the states, forwards; g_k and g_v the states' gradients, backwards.
      for (std::int64_t t = segments.begin(s); t < segments.end(s); ++t) {
        for (std::int64_t i = 0; i < K; ++i) {
          T sum = 0;
          for (std::int64_t j = 0; j < V; ++j) {
            S[i * V + j] = decay * S[i * V + j] + in.k(t, head, i) * in.v(t, head, j);
            sum += S[i * V + j] * grad_y(t, head, j);
          }
          if (out.q) out.q(t, head, i) = in.scale * sum;
        }
      }
      for (std::int64_t t = segments.end(s) - 1; t >= segments.begin(s); --t) {
        for (std::int64_t j = 0; j < V && out.v; ++j) out.v(t, head, j) = 0;
        for (std::int64_t i = 0; i < K; ++i) {
          T sum = 0;
          for (std::int64_t j = 0; j < V; ++j) {
            T& cell = G[i * V + j];
            cell += in.scale * in.q(t, head, i) * grad_y(t, head, j);
            sum += cell * in.v(t, head, j);
            if (out.v) out.v(t, head, j) += cell * in.k(t, head, i);
            cell *= decay;
          }
          if (out.k) out.k(t, head, i) = sum;
        }
      }
      for (std::int64_t i = 0; i < K * V && out.state; ++i) out.state(row, i / V, i % V) = G[i];
    }
  }
}

}  // namespace stepwell::ops::reference
