// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/gated_delta/reference.h"

namespace stepwell::ops {

template <class T>
void gated_delta_backward(Context&, const GatedDeltaInputs<T>& in, const Segments& segments, View<const T, 4> state,
                          View<const T, 4>, View<const T, 3> grad_o, View<const T, 4> grad_state,
                          const GatedDeltaGradients<T>& out) {
  reference::gated_delta_backward(in, segments, state, grad_o, grad_state, out);
}

template void gated_delta_backward(Context&, const GatedDeltaInputs<float>&, const Segments&, View<const float, 4>,
                                   View<const float, 4>, View<const float, 3>, View<const float, 4>,
                                   const GatedDeltaGradients<float>&);
template void gated_delta_backward(Context&, const GatedDeltaInputs<double>&, const Segments&, View<const double, 4>,
                                   View<const double, 4>, View<const double, 3>, View<const double, 4>,
                                   const GatedDeltaGradients<double>&);

}  // namespace stepwell::ops
