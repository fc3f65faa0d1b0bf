// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/core/context.h"
#include "stepwell/core/segments.h"
#include "stepwell/core/view.h"

namespace stepwell::ops {

enum class Discretisation {
  Euler,      // input weight dt·B: what every published checkpoint was trained with
  ZeroOrder,  // exact zero-order hold: dt·phi(dt·A)·B, phi(x) = expm1(x)/x
};

template <class T>
struct SelectiveScanInputs {
  View<const T, 2> u, dt;  // [L, D]; dt is the step, or its pre-activation when softplus is on
  View<const T, 2> A;      // [D, N], ≤ 0: −exp(A_log)
  View<const T, 3> B, C;   // [L, G, N], channel d uses group ⌊d/(D/G)⌋; or constant in time: [D, 1, N] with constant_bc
  View<const T, 2> z;      // [L, D] gate: y · silu(z); absent: no gate
  const T* D = nullptr;    // [D] skip connection D·u
  const T* dt_bias = nullptr;  // [D], added to dt before softplus
  bool softplus = true;        // threshold 20, part of the definition
  bool constant_bc = false;
  Discretisation discretisation = Discretisation::Euler;
};

// The selective scan of Mamba (arXiv:2312.00752, algorithm 2), fused:
//   dt' = softplus(dt + dt_bias);  h = exp(dt'·A)·h + dt'·u·B;  y = (Σ_n C[n]·h[n] + D·u)·silu(z)
// Shapes  h [S, N, D] in/out: one state per sequence, channels innermost; y [L, D];
//         h_all [L, N, D] if wanted: the state after every token; checkpoints if wanted: what the backward pass starts
//         from, selective_scan_checkpoints() numbers of it.
// Range   dt' ≥ 0, A ≤ 0 (−inf allowed: decay 0), any D, N ≥ 0, lengths ≥ 0. dt' = 0 leaves h untouched exactly.
// Order   tokens in order, n = 0 … N−1 in order, lanes over channels: same bits however a sequence is split, batched or
//         threaded (X1), and on every instruction set with FMA (X7).
template <class T>
void selective_scan(Context& ctx, const SelectiveScanInputs<T>& in, const Segments& segments, View<T, 3> h,
                    View<T, 2> y, View<T, 3> h_all = {}, T* checkpoints = nullptr);

// Numbers of checkpoints for `segments`: about N·D per 64 tokens.
template <class T>
std::int64_t selective_scan_checkpoints(const SelectiveScanInputs<T>& in, const Segments& segments);

template <class T>
struct SelectiveScanGradients {  // outputs, overwritten; a default View or nullptr is skipped
  View<T, 2> u, dt;              // [L, D]
  View<T, 2> A;                  // [D, N]
  View<T, 3> B, C;               // shapes of the inputs
  View<T, 2> z;                  // [L, D]
  T* D = nullptr;
  T* dt_bias = nullptr;
  View<T, 3> h;  // [S, N, D] gradient of the initial state
};

// Adjoint of selective_scan by checkpoint and replay (docs/numerics.md). `h0` [S, N, D] is the initial state (default
// View: zero), grad_y [L, D], grad_h [S, N, D] the gradient arriving at the last state (default View: zero).
// `checkpoints` as the forward pass left them; absent: made again. Scratch does not grow with L·D·N. Bits do not depend
// on threads (X3).
template <class T>
void selective_scan_backward(Context& ctx, const SelectiveScanInputs<T>& in, const Segments& segments,
                             View<const T, 3> h0, View<const T, 2> grad_y, View<const T, 3> grad_h,
                             const SelectiveScanGradients<T>& out, const T* checkpoints = nullptr);

}  // namespace stepwell::ops
