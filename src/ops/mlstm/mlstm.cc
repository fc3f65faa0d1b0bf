// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/mlstm.h"

#include "ops/mlstm/cell.h"

namespace stepwell::ops {

template <class T>
void mlstm(Context& ctx, const MlstmInputs<T>& in, const Segments& segments, const MlstmState<T>& state, View<T, 3> h,
           const MlstmOptions<T>& options) {
  ArenaScope scope(ctx.scratch());
  const std::int64_t H = in.q.extent[1];
  const MlstmCell<T> cell(ctx, in);
  ctx.parallel_for(segments.count() * H, [&](std::int64_t row, Arena& scratch) {
    const MlstmHead<T> head = cell.head(segments, row);
    const std::int64_t at = cell.at(segments, row);
    mlstm_gates(head, state.m[row], cell.gates(at), scratch);
    if (in.normalise) mlstm_normaliser(head, {cell.made_gates(at), state.n.row(row), cell.a + at, nullptr}, scratch);
    mlstm_factors(head, cell.a + at, cell.m + at, cell.factors + at);
    if (head.tokens > 0 && in.input_gate == InputGate::Exponential) state.m[row] = cell.m[at + head.tokens - 1];
  });
  GatedDeltaOptions<T> memory;
  memory.form = options.form;
  memory.chunk = options.chunk;
  memory.checkpoints = options.checkpoints;
  if (in.normalise) memory.o_factors = cell.template gate_view<const T>(cell.factors);
  gated_delta(ctx, cell.memory(), segments, state.C, h, memory);
}

template void mlstm(Context&, const MlstmInputs<float>&, const Segments&, const MlstmState<float>&, View<float, 3>,
                    const MlstmOptions<float>&);
template void mlstm(Context&, const MlstmInputs<double>&, const Segments&, const MlstmState<double>&, View<double, 3>,
                    const MlstmOptions<double>&);

}  // namespace stepwell::ops
