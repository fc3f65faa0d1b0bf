// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/short_conv.h"

#include "ops/short_conv/reference.h"

namespace stepwell::ops {

template <class T>
void short_conv(Context&, const ShortConvInputs<T>& in, const Segments& segments, View<T, 3> state, View<T, 2> y) {
  reference::short_conv(in, segments, state, y);
}

template <class T>
void short_conv_backward(Context&, const ShortConvInputs<T>& in, const Segments& segments, View<const T, 3> state,
                         View<const T, 2> grad_y, View<const T, 3> grad_state, const ShortConvGradients<T>& out) {
  reference::short_conv_backward(in, segments, state, grad_y, grad_state, out);
}

template void short_conv(Context&, const ShortConvInputs<float>&, const Segments&, View<float, 3>, View<float, 2>);
template void short_conv(Context&, const ShortConvInputs<double>&, const Segments&, View<double, 3>, View<double, 2>);
template void short_conv_backward(Context&, const ShortConvInputs<float>&, const Segments&, View<const float, 3>,
                                  View<const float, 2>, View<const float, 3>, const ShortConvGradients<float>&);
template void short_conv_backward(Context&, const ShortConvInputs<double>&, const Segments&, View<const double, 3>,
                                  View<const double, 2>, View<const double, 3>, const ShortConvGradients<double>&);

}  // namespace stepwell::ops
