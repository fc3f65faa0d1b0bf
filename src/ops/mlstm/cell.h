// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/core/context.h"
#include "stepwell/core/segments.h"

#include "ops/mlstm/cell_simd.h"

namespace stepwell::ops {

// What the gates of a call come to, numbers per token in arrays [H, L], in the context's scratch memory.
template <class T>
struct MlstmCell {
  MlstmCell(Context& ctx, const MlstmInputs<T>& inputs) : in(inputs), L(in.q.extent[0]) {
    const std::int64_t size = in.q.extent[1] * L;
    for (T** array : {&log_decay, &input, &m, &a, &factors}) *array = ctx.scratch().template allocate<T>(size);
  }

  // Where the numbers of state row `row` (sequence · H + head) begin.
  std::int64_t at(const Segments& segments, std::int64_t row) const {
    const std::int64_t H = in.q.extent[1];
    return row % H * L + segments.begin(row / H);
  }
  MlstmHead<T> head(const Segments& segments, std::int64_t row) const {
    const std::int64_t H = in.q.extent[1], first = segments.begin(row / H), h = row % H;
    const auto rows = [&](const auto& view) {
      return HeadRows<const T>{view.row(first) + h * view.stride[1], view.stride[0]};
    };
    return {segments.length(row / H),
            in.q.extent[2],
            in.v.extent[2],
            rows(in.q),
            rows(in.k),
            rows(in.i),
            rows(in.f),
            in.scale,
            in.eps,
            in.input_gate == InputGate::Sigmoid,
            in.normalise};
  }
  MlstmGates<T> gates(std::int64_t at) const { return {log_decay + at, input + at, m + at}; }
  MlstmGates<const T> made_gates(std::int64_t at) const { return {log_decay + at, input + at, m + at}; }

  // Numbers per token as a gate of the matrix memory.
  template <class U>
  View<U, 3> gate_view(U* numbers) const {
    return {numbers, {L, in.q.extent[1], 1}, {1, L, 1}};
  }
  // The matrix memory: the gated delta rule with decay F and write gate I, nothing erased.
  GatedDeltaInputs<T> memory() const {
    GatedDeltaInputs<T> delta;
    delta.q = in.q;
    delta.k = in.k;
    delta.v = in.v;
    delta.g = gate_view<const T>(log_decay);
    delta.w = gate_view<const T>(input);
    delta.scale = in.scale;
    return delta;
  }

  const MlstmInputs<T>& in;
  std::int64_t L;
  T *log_decay, *input, *m, *a, *factors;
};

}  // namespace stepwell::ops
