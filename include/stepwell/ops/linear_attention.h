// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/core/context.h"
#include "stepwell/core/segments.h"
#include "stepwell/core/view.h"

namespace stepwell::ops {

template <class T>
struct LinearAttentionInputs {
  View<const T, 3> q, k;     // [L, H, K]
  View<const T, 3> v;        // [L, H, V]
  const T* decay = nullptr;  // [H] factor per token and head, in [0, 1]; a constant, not learned
  T scale = 1;               // on the output
};

// Linear attention with a fixed decay per head (RetNet's retention without rotation, arXiv:2307.08621):
//   S = decay·S + k vᵀ;   y = scale·qᵀS
// Shapes  state [S, H, K, V] in/out as View [S·H, K, V]; y [L, H, V].
// Order   rows of S in increasing order, lanes over value columns (X1, X7).
template <class T>
void linear_attention(Context& ctx, const LinearAttentionInputs<T>& in, const Segments& segments, View<T, 3> state,
                      View<T, 3> y);

template <class T>
struct LinearAttentionGradients {  // outputs, overwritten
  View<T, 3> q, k, v;
  View<T, 3> state;  // of the initial state
};

// Adjoint of linear_attention; arguments as in selective_scan_backward.
template <class T>
void linear_attention_backward(Context& ctx, const LinearAttentionInputs<T>& in, const Segments& segments,
                               View<const T, 3> state, View<const T, 3> grad_y, View<const T, 3> grad_state,
                               const LinearAttentionGradients<T>& out);

}  // namespace stepwell::ops
