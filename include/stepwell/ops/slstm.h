// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/core/context.h"
#include "stepwell/core/segments.h"
#include "stepwell/core/view.h"

namespace stepwell::ops {

// H heads of D units; a unit hears of the units of its own head alone.
template <class T>
struct SlstmInputs {
  View<const T, 2> x;  // [L, 4·H·D] pre-activations: gates i, f, z, o, and in each head after head
  View<const T, 3> R;  // [H, 4·D, D], contiguous: row g·D + d of a head is what gate g of unit d takes of the head's y
  const T* bias = nullptr;  // [4·H·D], as x; absent: 0
};

// What a token left behind, for the backward pass: the pre-activations i, f, z, o with all that was added, then c, n,
// m.
inline constexpr std::int64_t kSlstmTrace = 7;

// The sLSTM cell (xLSTM, arXiv:2405.04517, §2.2), per unit, with [i f z o] = x + R y + bias:
//   m' = max(log sigmoid(f) + m, i), or i where n = 0;  F = exp(log sigmoid(f) + m − m');  I = exp(i − m')
//   c = F·c + I·tanh(z);  n = F·n + I;  y = sigmoid(o)·c/n
// Shapes  state [S, 4, H·D] in/out: y, c, n, m; y [L, H·D]; trace [H, L, 7·D] or absent.
// Range   any finite gates; f = −inf forgets, i = −inf writes nothing (y is 0 while nothing was ever written). Where a
//         state has n = 0 it must have c = 0. L ≥ 0 and H, D ≥ 1.
// Order   each pre-activation is x + bias and then one chain of fused multiply-adds over the head's y in increasing
//         order: the same bits however a sequence is split, batched or threaded (X1), and on every instruction set with
//         FMA (X7).
template <class T>
void slstm(Context& ctx, const SlstmInputs<T>& in, const Segments& segments, View<T, 3> state, View<T, 2> y,
           View<T, 3> trace = {});

template <class T>
struct SlstmGradients {  // outputs, overwritten; a default View or nullptr is skipped
  View<T, 2> x;
  View<T, 3> R;
  T* bias = nullptr;
  View<T, 3> state;  // of the initial state
};

// Adjoint of slstm, exact. `state` is the initial state (absent: zero), y and trace what the forward pass gave,
// grad_y [L, H·D] and grad_last [S, 4, H·D] what arrives there (absent: zero). Bits do not depend on threads (X3).
template <class T>
void slstm_backward(Context& ctx, const SlstmInputs<T>& in, const Segments& segments, View<const T, 3> state,
                    View<const T, 2> y, View<const T, 3> trace, View<const T, 2> grad_y, View<const T, 3> grad_last,
                    const SlstmGradients<T>& out);

}  // namespace stepwell::ops
