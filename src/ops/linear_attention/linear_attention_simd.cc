// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear_attention/linear_attention_simd.cc"
#include "ops/linear_attention/linear_attention_simd.h"

#include "hwy/foreach_target.h"

#include "simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

template <class T>
void attention_forward_t(const AttentionHead<T>& head, T* S, T* y, std::int64_t y_stride) {
  const std::int64_t row = padded_columns(head.V);
  const Vec<T> decay = set(head.decay), scale = set(head.scale);
  for (std::int64_t t = 0; t < head.tokens; ++t) {
    const T *q = head.q + t * head.q_stride, *k = head.k + t * head.k_stride;
    for (std::int64_t j = 0; j < head.V; j += kWidth<T>) {
      const Vec<T> v = load_part(head.v + t * head.v_stride + j, head.V - j);
      Vec<T> sum = zero<T>();
      for (std::int64_t i = 0; i < head.K; ++i) {
        const Vec<T> state = fma(set(k[i]), v, hn::Mul(decay, load(S + i * row + j)));
        store<T>(state, S + i * row + j);
        sum = fma(set(q[i]), state, sum);
      }
      store_part<T>(hn::Mul(scale, sum), y + t * y_stride + j, head.V - j);
    }
  }
}

template <class T>
void attention_grad_q_t(const AttentionHead<T>& head, T* S, const T* grad_y, std::int64_t grad_y_stride, T* q,
                        std::int64_t q_stride) {
  const std::int64_t row = padded_columns(head.V);
  const Vec<T> decay = set(head.decay);
  for (std::int64_t t = 0; t < head.tokens; ++t) {
    const T *k = head.k + t * head.k_stride, *v = head.v + t * head.v_stride, *g = grad_y + t * grad_y_stride;
    for (std::int64_t i = 0; i < head.K; ++i) {
      SixteenLanes<T> sum;
#pragma GCC unroll 16
      for (auto& lanes : sum.v) lanes = zero<T>();
      for (std::int64_t j = 0; j < row; j += 16) {
#pragma GCC unroll 16
        for (int l = 0; l < sum.kVectors; ++l) {
          const std::int64_t at = j + l * kWidth<T>;
          const Vec<T> column = load_part(v + at, head.V - at);
          const Vec<T> state = fma(set(k[i]), column, hn::Mul(decay, load(S + i * row + at)));
          store<T>(state, S + i * row + at);
          sum.v[l] = fma(state, load_part(g + at, head.V - at), sum.v[l]);
        }
      }
      q[t * q_stride + i] = head.scale * fold_lanes(sum);
    }
  }
}

template <class T>
void attention_grad_kv_t(const AttentionHead<T>& head, T* G, const AttentionGradients<T>& out) {
  const std::int64_t row = padded_columns(head.V);
  const Vec<T> decay = set(head.decay);
  for (std::int64_t t = head.tokens - 1; t >= 0; --t) {
    const T *q = head.q + t * head.q_stride, *k = head.k + t * head.k_stride, *v = head.v + t * head.v_stride;
    const T* g = out.grad_y + t * out.grad_y_stride;
    for (std::int64_t j = 0; j < head.V; j += kWidth<T>) {
      const Vec<T> grad = load_part(g + j, head.V - j);
      Vec<T> sum = zero<T>();
      for (std::int64_t i = 0; i < head.K; ++i) {
        const Vec<T> state = fma(set(head.scale * q[i]), grad, load(G + i * row + j));
        store<T>(state, G + i * row + j);
        sum = fma(set(k[i]), state, sum);
      }
      if (out.v) store_part<T>(sum, out.v + t * out.v_stride + j, head.V - j);
    }
    for (std::int64_t i = 0; i < head.K; ++i) {
      SixteenLanes<T> sum;
#pragma GCC unroll 16
      for (auto& lanes : sum.v) lanes = zero<T>();
      for (std::int64_t j = 0; j < row; j += 16) {
#pragma GCC unroll 16
        for (int l = 0; l < sum.kVectors; ++l) {
          const std::int64_t at = j + l * kWidth<T>;
          const Vec<T> state = load(G + i * row + at);
          sum.v[l] = fma(state, load_part(v + at, head.V - at), sum.v[l]);
          store<T>(hn::Mul(decay, state), G + i * row + at);
        }
      }
      if (out.k) out.k[t * out.k_stride + i] = fold_lanes(sum);
    }
  }
}

void attention_forward_f32(const AttentionHead<float>& head, float* S, float* y, std::int64_t y_stride) {
  attention_forward_t(head, S, y, y_stride);
}
void attention_forward_f64(const AttentionHead<double>& head, double* S, double* y, std::int64_t y_stride) {
  attention_forward_t(head, S, y, y_stride);
}
void attention_grad_q_f32(const AttentionHead<float>& head, float* S, const float* grad_y, std::int64_t grad_y_stride,
                          float* q, std::int64_t q_stride) {
  attention_grad_q_t(head, S, grad_y, grad_y_stride, q, q_stride);
}
void attention_grad_q_f64(const AttentionHead<double>& head, double* S, const double* grad_y,
                          std::int64_t grad_y_stride, double* q, std::int64_t q_stride) {
  attention_grad_q_t(head, S, grad_y, grad_y_stride, q, q_stride);
}
void attention_grad_kv_f32(const AttentionHead<float>& head, float* G, const AttentionGradients<float>& out) {
  attention_grad_kv_t(head, G, out);
}
void attention_grad_kv_f64(const AttentionHead<double>& head, double* G, const AttentionGradients<double>& out) {
  attention_grad_kv_t(head, G, out);
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(attention_forward_f32);
HWY_EXPORT(attention_forward_f64);
HWY_EXPORT(attention_grad_q_f32);
HWY_EXPORT(attention_grad_q_f64);
HWY_EXPORT(attention_grad_kv_f32);
HWY_EXPORT(attention_grad_kv_f64);

void attention_forward(const AttentionHead<float>& head, float* S, float* y, std::int64_t y_stride) {
  HWY_DYNAMIC_DISPATCH(attention_forward_f32)(head, S, y, y_stride);
}
void attention_forward(const AttentionHead<double>& head, double* S, double* y, std::int64_t y_stride) {
  HWY_DYNAMIC_DISPATCH(attention_forward_f64)(head, S, y, y_stride);
}
void attention_grad_q(const AttentionHead<float>& head, float* S, const float* grad_y, std::int64_t grad_y_stride,
                      float* q, std::int64_t q_stride) {
  HWY_DYNAMIC_DISPATCH(attention_grad_q_f32)(head, S, grad_y, grad_y_stride, q, q_stride);
}
void attention_grad_q(const AttentionHead<double>& head, double* S, const double* grad_y, std::int64_t grad_y_stride,
                      double* q, std::int64_t q_stride) {
  HWY_DYNAMIC_DISPATCH(attention_grad_q_f64)(head, S, grad_y, grad_y_stride, q, q_stride);
}
void attention_grad_kv(const AttentionHead<float>& head, float* G, const AttentionGradients<float>& out) {
  HWY_DYNAMIC_DISPATCH(attention_grad_kv_f32)(head, G, out);
}
void attention_grad_kv(const AttentionHead<double>& head, double* G, const AttentionGradients<double>& out) {
  HWY_DYNAMIC_DISPATCH(attention_grad_kv_f64)(head, G, out);
}

}  // namespace stepwell::ops
#endif
