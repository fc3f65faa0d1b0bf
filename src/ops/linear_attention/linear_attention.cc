// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/linear_attention.h"

#include "ops/linear_attention/reference.h"

namespace stepwell::ops {

template <class T>
void linear_attention(Context&, const LinearAttentionInputs<T>& in, const Segments& segments, View<T, 3> state,
                      View<T, 3> y) {
  reference::linear_attention(in, segments, state, y);
}

template <class T>
void linear_attention_backward(Context&, const LinearAttentionInputs<T>& in, const Segments& segments,
                               View<const T, 3> state, View<const T, 3> grad_y, View<const T, 3> grad_state,
                               const LinearAttentionGradients<T>& out) {
  reference::linear_attention_backward(in, segments, state, grad_y, grad_state, out);
}

template void linear_attention(Context&, const LinearAttentionInputs<float>&, const Segments&, View<float, 3>,
                               View<float, 3>);
template void linear_attention(Context&, const LinearAttentionInputs<double>&, const Segments&, View<double, 3>,
                               View<double, 3>);
template void linear_attention_backward(Context&, const LinearAttentionInputs<float>&, const Segments&,
                                        View<const float, 3>, View<const float, 3>, View<const float, 3>,
                                        const LinearAttentionGradients<float>&);
template void linear_attention_backward(Context&, const LinearAttentionInputs<double>&, const Segments&,
                                        View<const double, 3>, View<const double, 3>, View<const double, 3>,
                                        const LinearAttentionGradients<double>&);

}  // namespace stepwell::ops
