// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/short_conv/short_conv_simd.cc"
#include "ops/short_conv/short_conv_simd.h"

#include "hwy/foreach_target.h"

#include "simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

template <class V>
HWY_INLINE V activate(Activation activation, V sum) {
  return activation == Activation::Silu ? silu(sum) : sum;
}

template <class T>
void conv_row_t(const ConvRow<T>& work) {
  std::int64_t c = 0;
  for (; c + kWidth<T> <= work.width; c += kWidth<T>) {
    Vec<T> sum = work.bias ? load(work.bias + c) : zero<T>();
    for (std::int64_t j = 0; j < work.K; ++j) {
      sum = fma(load(work.weight + j * work.weight_stride + c), load(work.rows[j] + c), sum);
    }
    store<T>(activate(work.activation, sum), work.y + c);
  }
  if (c == work.width) return;
  const std::int64_t left = work.width - c;
  Vec<T> sum = work.bias ? load_tail(work.bias + c, left) : zero<T>();
  for (std::int64_t j = 0; j < work.K; ++j) {
    sum = fma(load_tail(work.weight + j * work.weight_stride + c, left), load_tail(work.rows[j] + c, left), sum);
  }
  store_tail<T>(activate(work.activation, sum), work.y + c, left);
}
void conv_row_f32(const ConvRow<float>& work) { conv_row_t(work); }
void conv_row_f64(const ConvRow<double>& work) { conv_row_t(work); }

template <class T>
void conv_tile_backward_t(const ConvTile<T>& work) {
  const std::int64_t K = work.K;
  for (std::int64_t c = 0; c < kConvBlock; c += kWidth<T>) {
    const T *weight = work.weight + c, *x = work.x + c;
    T *grad = work.grad + c, *grad_x = work.grad_x + c;
    Vec<T> bias_sum = zero<T>();
    for (std::int64_t t = 0; t < work.tokens; ++t) {
      Vec<T> g = load(grad + t * kConvBlock);
      if (work.activation == Activation::Silu) {
        Vec<T> sum = load(work.bias + c);
        for (std::int64_t j = 0; j < K; ++j)
          sum = fma(load(weight + j * kConvBlock), load(x + (t + 1 + j) * kConvBlock), sum);
        g = hn::Mul(g, silu_derivative(sum));
        store<T>(g, grad + t * kConvBlock);
      }
      bias_sum = hn::Add(bias_sum, g);
    }
    for (std::int64_t j = 0; j < K; ++j) {
      Vec<T> weight_sum = zero<T>();
      const Vec<T> w = load(weight + j * kConvBlock);
      for (std::int64_t t = 0; t < work.tokens; ++t) {
        weight_sum = fma(load(grad + t * kConvBlock), load(x + (t + 1 + j) * kConvBlock), weight_sum);
        const Vec<T> sum = load(grad_x + t * kConvBlock);
        store<T>(fma(w, load(grad + (t + K - 1 - j) * kConvBlock), sum), grad_x + t * kConvBlock);
      }
      T* total = work.grad_weight + j * kConvBlock + c;
      store<T>(hn::Add(load(total), weight_sum), total);
    }
    store<T>(hn::Add(load(work.grad_bias + c), bias_sum), work.grad_bias + c);
  }
}
void conv_tile_backward_f32(const ConvTile<float>& work) { conv_tile_backward_t(work); }
void conv_tile_backward_f64(const ConvTile<double>& work) { conv_tile_backward_t(work); }

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(conv_row_f32);
HWY_EXPORT(conv_row_f64);
HWY_EXPORT(conv_tile_backward_f32);
HWY_EXPORT(conv_tile_backward_f64);

void conv_row(const ConvRow<float>& work) { HWY_DYNAMIC_DISPATCH(conv_row_f32)(work); }
void conv_row(const ConvRow<double>& work) { HWY_DYNAMIC_DISPATCH(conv_row_f64)(work); }
void conv_tile_backward(const ConvTile<float>& work) { HWY_DYNAMIC_DISPATCH(conv_tile_backward_f32)(work); }
void conv_tile_backward(const ConvTile<double>& work) { HWY_DYNAMIC_DISPATCH(conv_tile_backward_f64)(work); }

}  // namespace stepwell::ops
#endif
