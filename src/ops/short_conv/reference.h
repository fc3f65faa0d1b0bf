// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "stepwell/core/flush_to_zero.h"
#include "stepwell/ops/short_conv.h"

#include "ops/reference_functions.h"

// The short convolution and its adjoint as plain loops. Shapes and meaning as in stepwell/ops/short_conv.h.
namespace stepwell::ops::reference {

// Input i of sequence s: a token, or for −K ≤ i < 0 a row of the incoming state.
template <class T>
T short_conv_input(const ShortConvInputs<T>& in, const Segments& segments, View<const T, 3> state, std::int64_t s,
                   std::int64_t i, std::int64_t d) {
  return i >= 0 ? in.x(segments.begin(s) + i, d) : state(s, in.weight.extent[1] + i, d);
}

template <class T>
T short_conv_sum(const ShortConvInputs<T>& in, const Segments& segments, View<const T, 3> state, std::int64_t s,
                 std::int64_t t, std::int64_t d) {
  const std::int64_t K = in.weight.extent[1];
  T sum = in.bias ? in.bias[d] : T(0);
  for (std::int64_t j = 0; j < K; ++j) {
    sum = std::fma(in.weight(d, j), short_conv_input(in, segments, state, s, t - (K - 1) + j, d), sum);
  }
  return sum;
}

template <class T>
void short_conv(const ShortConvInputs<T>& in, const Segments& segments, View<T, 3> state, View<T, 2> y) {
  FlushToZero mode;
  const std::int64_t D = in.weight.extent[0], K = in.weight.extent[1];
  std::vector<T> window(static_cast<std::size_t>(K));
  for (std::int64_t s = 0; s < segments.count(); ++s) {
    for (std::int64_t d = 0; d < D; ++d) {
      for (std::int64_t t = 0; t < segments.length(s); ++t) {
        const T sum = short_conv_sum<T>(in, segments, state, s, t, d);
        y(segments.begin(s) + t, d) = in.activation == Activation::Silu ? silu(sum) : sum;
      }
      for (std::int64_t i = 0; i < K; ++i) {
        window[i] = short_conv_input<T>(in, segments, state, s, segments.length(s) - K + i, d);
      }
      for (std::int64_t i = 0; i < K; ++i) state(s, i, d) = window[i];
    }
  }
}

template <class T>
void short_conv_backward(const ShortConvInputs<T>& in, const Segments& segments, View<const T, 3> state,
                         View<const T, 2> grad_y, View<const T, 3> grad_state, const ShortConvGradients<T>& out) {
  FlushToZero mode;
  const std::int64_t D = in.weight.extent[0], K = in.weight.extent[1];
  for (std::int64_t d = 0; d < D; ++d) {
    std::vector<T> grad_weight(static_cast<std::size_t>(K));
    T grad_bias = 0;
    for (std::int64_t s = 0; s < segments.count(); ++s) {
      const std::int64_t first = segments.begin(s), length = segments.length(s);
      // Gradient of inputs −K … length−1; those of the outgoing window start with its own gradient.
      std::vector<T> grad(static_cast<std::size_t>(length + K));
      for (std::int64_t i = 0; i < K; ++i) grad[length + i] = grad_state ? grad_state(s, i, d) : T(0);
      for (std::int64_t t = 0; t < length; ++t) {
        T g = grad_y(first + t, d);
        if (in.activation == Activation::Silu) {
          g *= silu_derivative(short_conv_sum(in, segments, state, s, t, d));
        }
        grad_bias += g;
        for (std::int64_t j = 0; j < K; ++j) {
          const std::int64_t i = t - (K - 1) + j;
          grad_weight[j] += g * short_conv_input(in, segments, state, s, i, d);
          grad[K + i] += g * in.weight(d, j);
        }
      }
      for (std::int64_t t = 0; t < length && out.x; ++t) out.x(first + t, d) = grad[K + t];
      for (std::int64_t i = 0; i < K && out.state; ++i) out.state(s, i, d) = grad[i];
    }
    for (std::int64_t j = 0; j < K && out.weight; ++j) out.weight(d, j) = grad_weight[j];
    if (out.bias) out.bias[d] = grad_bias;
  }
}

}  // namespace stepwell::ops::reference
