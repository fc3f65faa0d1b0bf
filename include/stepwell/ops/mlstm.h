// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/core/context.h"
#include "stepwell/core/segments.h"
#include "stepwell/core/view.h"
#include "stepwell/ops/gated_delta.h"

namespace stepwell::ops {

enum class InputGate {
  Exponential,  // exp(i), stabilised by the running maximum m
  Sigmoid,      // sigmoid(i); no stabiliser, m stays as it is
};

template <class T>
struct MlstmInputs {
  View<const T, 3> q, k;  // [L, H, K]
  View<const T, 3> v;     // [L, H, V]
  View<const T, 2> i, f;  // [L, H] pre-activations of the input and forget gates
  T scale = 1;            // on q; K^−½ in every published model
  InputGate input_gate = InputGate::Exponential;
  bool normalise = true;  // divide by the denominator (always with the exponential gate); without it n stays as it is
  T eps = T(1e-6);        // added to the denominator
};

// States of S sequences and H heads. The memory is stored stabilised: the true one is C·eᵐ, n·eᵐ.
template <class T>
struct MlstmState {
  View<T, 4> C;    // [S·H, units, K, 16] packed (ops/gated_delta.h)
  View<T, 2> n;    // [S·H, K]
  T* m = nullptr;  // [S·H]; −∞ with C = n = 0 starts without a floor from the past
};

template <class T>
struct MlstmOptions {
  Form form = Form::Auto;
  std::int64_t chunk = 0;
  View<T, 4> checkpoints;  // of C, as in GatedDeltaOptions
};

// The mLSTM cell (xLSTM, arXiv:2405.04517, §2.3), per head:
//   m' = max(log sigmoid(f) + m, i);  F = exp(log sigmoid(f) + m − m');  I = exp(i − m')
//   C = F·C + I·k vᵀ;  n = F·n + I·k;  h = scale·Cᵀq / (max(|scale·n·q|, exp(−m')) + eps)
// With the sigmoid gate F = sigmoid(f), I = sigmoid(i), and the floor exp(−m') is 1.
// Shapes  state in/out; h [L, H, V].
// Range   any finite gates (±300 and more: nothing overflows), f = −inf forgets everything; L ≥ 0 and H, K, V ≥ 1.
// Order   tokens in order; m is rounded to T at every token and the gates are computed from the rounded m, so that the
//         recurrent form has the same bits however a sequence is split (X1), and on every instruction set (X7).
template <class T>
void mlstm(Context& ctx, const MlstmInputs<T>& in, const Segments& segments, const MlstmState<T>& state, View<T, 3> h,
           const MlstmOptions<T>& options = {});

template <class T>
struct MlstmGradients {  // outputs, overwritten; a default View or nullptr is skipped
  View<T, 3> q, k, v;
  View<T, 2> i, f;
  MlstmState<T> state;  // of the initial state, m with C and n held fixed
};

// Adjoint of mlstm, exact: also through the stabiliser (which the denominator's eps lets through) and through the last
// state. `state` is the initial state (absent parts: zero), `last` and h what the forward pass gave, grad_h [L, H, V]
// and grad_last what arrives there (absent parts: zero). `checkpoints` as the forward pass left them; absent: made
// again.
template <class T>
void mlstm_backward(Context& ctx, const MlstmInputs<T>& in, const Segments& segments, const MlstmState<const T>& state,
                    View<const T, 4> checkpoints, View<const T, 3> h, const MlstmState<const T>& last,
                    View<const T, 3> grad_h, const MlstmState<const T>& grad_last, const MlstmGradients<T>& out);

}  // namespace stepwell::ops
