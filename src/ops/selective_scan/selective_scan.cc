// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/selective_scan.h"

#include "ops/selective_scan/reference.h"

namespace stepwell::ops {

template <class T>
void selective_scan(Context&, const SelectiveScanInputs<T>& in, const Segments& segments, View<T, 3> h, View<T, 2> y,
                    View<T, 3> h_all) {
  reference::selective_scan(in, segments, h, y, h_all);
}

template <class T>
void selective_scan_backward(Context&, const SelectiveScanInputs<T>& in, const Segments& segments, View<const T, 3> h0,
                             View<const T, 2> grad_y, View<const T, 3> grad_h, const SelectiveScanGradients<T>& out) {
  reference::selective_scan_backward(in, segments, h0, grad_y, grad_h, out);
}

template void selective_scan(Context&, const SelectiveScanInputs<float>&, const Segments&, View<float, 3>,
                             View<float, 2>, View<float, 3>);
template void selective_scan(Context&, const SelectiveScanInputs<double>&, const Segments&, View<double, 3>,
                             View<double, 2>, View<double, 3>);
template void selective_scan_backward(Context&, const SelectiveScanInputs<float>&, const Segments&,
                                      View<const float, 3>, View<const float, 2>, View<const float, 3>,
                                      const SelectiveScanGradients<float>&);
template void selective_scan_backward(Context&, const SelectiveScanInputs<double>&, const Segments&,
                                      View<const double, 3>, View<const double, 2>, View<const double, 3>,
                                      const SelectiveScanGradients<double>&);

}  // namespace stepwell::ops
