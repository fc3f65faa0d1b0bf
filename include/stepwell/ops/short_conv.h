// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/core/context.h"
#include "stepwell/core/segments.h"
#include "stepwell/core/view.h"

namespace stepwell::ops {

enum class Activation { None, Silu };

template <class T>
struct ShortConvInputs {
  View<const T, 2> x;       // [L, D] token rows
  View<const T, 2> weight;  // [D, K]; weight[d][K−1] multiplies the current token
  const T* bias = nullptr;  // [D]
  Activation activation = Activation::Silu;
};

// Causal depthwise convolution with carried state, as in Mamba (arXiv:2312.00752, §3.4):
//   v[t][d] = bias[d] + Σ_{j=0..K−1} weight[d][j] · x[t−(K−1)+j][d],   y = activation(v)
// Shapes  state [S, K, D] in/out: the last K inputs of each sequence, newest last (row 0 of an incoming state never
//         matters unless the sequence is empty); zeros before the start. y [L, D].
// Range   any K ≥ 1, D ≥ 0, sequence length ≥ 0 (shorter than K too).
// Order   acc = bias, then fma over j = 0 … K−1, always all K taps: same bits however a sequence is split.
template <class T>
void short_conv(Context& ctx, const ShortConvInputs<T>& in, const Segments& segments, View<T, 3> state, View<T, 2> y);

template <class T>
struct ShortConvGradients {  // outputs, overwritten; a default View or nullptr is skipped
  View<T, 2> x;              // [L, D]
  View<T, 2> weight;         // [D, K] summed over tokens
  T* bias = nullptr;         // [D]
  View<T, 3> state;          // [S, K, D] gradient of the incoming state
};

// Adjoint of short_conv. `state` is the incoming state (unchanged), grad_y [L, D], grad_state [S, K, D] the gradient
// arriving at the outgoing state (default View: zero). Bits do not depend on threads (X3).
template <class T>
void short_conv_backward(Context& ctx, const ShortConvInputs<T>& in, const Segments& segments, View<const T, 3> state,
                         View<const T, 2> grad_y, View<const T, 3> grad_state, const ShortConvGradients<T>& out);

}  // namespace stepwell::ops
