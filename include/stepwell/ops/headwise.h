// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/core/context.h"
#include "stepwell/core/view.h"

namespace stepwell::ops {

// A linear layer of G blocks along the diagonal, each of its own group of features:
//   y[l][g·out + o] = Σ_i weight[g][o][i]·x[l][g·in + i] + bias[g·out + o]
// Shapes  x [L, G·in]; weight [G, out, in], of any strides (a transposed one gives the gradient of x); bias [G·out] or
//         null; y [L, G·out]. Last dimensions of x and y contiguous.
// Range   any extent ≥ 0.
// Order   that of matmul (stepwell/ops/matmul.h), group by group: X1 and X7 hold.
template <class T>
void headwise_linear(Context& ctx, View<const T, 2> x, View<const T, 3> weight, const T* bias, View<T, 2> y);

// grad_weight[g][o][i] = Σ_l grad_y[l][g·out + o]·x[l][g·in + i], in matmul's order over l. grad_weight contiguous.
template <class T>
void headwise_weight_gradient(Context& ctx, View<const T, 2> grad_y, View<const T, 2> x, View<T, 3> grad_weight);

}  // namespace stepwell::ops
