// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "stepwell/ops/gated_delta.h"

namespace stepwell::ops {

template <class T>
void pack_state(Context& ctx, View<const T, 3> state, View<T, 4> packed) {
  const std::int64_t K = state.extent[1], V = state.extent[2];
  ctx.parallel_for(state.extent[0], [&](std::int64_t n, Arena&) {
    for (std::int64_t unit = 0; unit < packed.extent[1]; ++unit) {
      const std::int64_t columns = std::min(kStateUnit, V - unit * kStateUnit);
      for (std::int64_t d = 0; d < K; ++d) {
        T* to = &packed(n, unit, d, 0);
        for (std::int64_t c = 0; c < columns; ++c) to[c] = state(n, d, unit * kStateUnit + c);
        std::fill(to + columns, to + kStateUnit, T(0));
      }
    }
  });
}

template <class T>
void unpack_state(Context& ctx, View<const T, 4> packed, View<T, 3> state) {
  const std::int64_t K = state.extent[1], V = state.extent[2];
  ctx.parallel_for(state.extent[0], [&](std::int64_t n, Arena&) {
    for (std::int64_t d = 0; d < K; ++d) {
      for (std::int64_t c = 0; c < V; ++c) state(n, d, c) = packed(n, c / kStateUnit, d, c % kStateUnit);
    }
  });
}

template void pack_state(Context&, View<const float, 3>, View<float, 4>);
template void pack_state(Context&, View<const double, 3>, View<double, 4>);
template void unpack_state(Context&, View<const float, 4>, View<float, 3>);
template void unpack_state(Context&, View<const double, 4>, View<double, 3>);

}  // namespace stepwell::ops
