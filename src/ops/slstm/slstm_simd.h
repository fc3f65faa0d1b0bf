// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/core/arena.h"
#include "stepwell/ops/slstm.h"

#include "ops/gated_delta/delta_head.h"

namespace stepwell::ops {

// One head of one sequence.
template <class T>
struct SlstmHead {
  std::int64_t tokens, D;
  HeadRows<const T> x;  // number d of gate g of a token is x.row(t)[g·gate + d]
  std::int64_t gate;
  const T* bias;  // as x; null: 0
  const T* R;     // forward: transposed, [D, 4·D]; backward: [4·D, D]
};
template <class T>
struct SlstmCells {
  T *y, *c, *n, *m;  // [D]
};

// Advances the state over the tokens. `y` takes each token's y, `trace` (absent: null) its trace.
void slstm_forward(const SlstmHead<float>& head, const SlstmCells<float>& state, HeadRows<float> y,
                   HeadRows<float> trace, Arena& scratch);
void slstm_forward(const SlstmHead<double>& head, const SlstmCells<double>& state, HeadRows<double> y,
                   HeadRows<double> trace, Arena& scratch);

template <class T>
struct SlstmAdjoint {
  SlstmCells<const T> start;   // before the first token
  HeadRows<const T> y, trace;  // of the forward pass
  HeadRows<const T> grad_y;    // absent: null
  SlstmCells<T> grad;          // in: what arrives at the last state; out: at the first
  HeadRows<T> grad_x;          // as x
};
void slstm_adjoint(const SlstmHead<float>& head, const SlstmAdjoint<float>& work, Arena& scratch);
void slstm_adjoint(const SlstmHead<double>& head, const SlstmAdjoint<double>& work, Arena& scratch);

}  // namespace stepwell::ops
