// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/gated_delta.h"

#include "ops/gated_delta/reference.h"

namespace stepwell::ops {

template <class T>
void gated_delta(Context&, const GatedDeltaInputs<T>& in, const Segments& segments, View<T, 4> state, View<T, 3> o,
                 const GatedDeltaOptions<T>&) {
  reference::gated_delta(in, segments, state, o);
}

template void gated_delta(Context&, const GatedDeltaInputs<float>&, const Segments&, View<float, 4>, View<float, 3>,
                          const GatedDeltaOptions<float>&);
template void gated_delta(Context&, const GatedDeltaInputs<double>&, const Segments&, View<double, 4>, View<double, 3>,
                          const GatedDeltaOptions<double>&);

}  // namespace stepwell::ops
