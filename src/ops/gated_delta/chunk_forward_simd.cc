// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gated_delta/chunk_forward_simd.cc"
#include "hwy/foreach_target.h"

#include "ops/gated_delta/chunk_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

template <class T>
void span_forward_t(const SpanForward<T>& work, Arena& scratch) {
  ArenaScope scope(scratch);
  const DeltaHead<T>& head = work.head;
  const std::int64_t K = head.K, chunk = work.layout.chunk;
  // Rows of a chunk: outputs, then values that become residuals.
  T* outputs = scratch.allocate<T>(2 * chunk * 16);
  T* gates = scratch.allocate<T>(chunk * 16);
  for (std::int64_t unit = 0; unit < work.units; ++unit) {
    T* S = work.state + unit * K * 16;
    const std::int64_t column = unit * 16;
    for (std::int64_t first = 0; first < work.tokens; first += chunk) {
      const ChunkFactors<T> f = work.layout.at(work.factors, first / chunk, work.tokens);
      const std::int64_t n = f.tokens;
      DeltaHead<T> rows = head;
      rows.v.data = head.v.row(first);
      if (head.w) rows.w.data = head.w.row(first);
      T* R = outputs + n * 16;
      std::fill_n(outputs, n * 16, T(0));
      load_columns<T>(rows.v, n, column, 16, head.V, R);
      if (head.w) {
        load_write_gates(rows, n, column, 16, gates);
        multiply(gates, R, n * 16, R);
      }
      tile_product<T>({f.read, f.Kp, 1, S, 16, K, outputs, 16, outputs, 16}, f.erases ? 2 * n : n, 16);
      if (f.erases) solve_residuals(f, 16, R);
      if (work.o) {
        read_residuals(f, 16, R, outputs);
        store_columns<T>(outputs, {work.o.row(first), work.o.stride}, n, column, 16, head.V);
      }
      tile_product<T>({f.write, 1, f.Kp, R, 16, n, S, 16, S, 16, f.decay}, K, 16);
    }
  }
}
void span_forward_f32(const SpanForward<float>& work, Arena& scratch) { span_forward_t(work, scratch); }
void span_forward_f64(const SpanForward<double>& work, Arena& scratch) { span_forward_t(work, scratch); }

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(span_forward_f32);
HWY_EXPORT(span_forward_f64);

void span_forward(const SpanForward<float>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(span_forward_f32)(work, scratch);
}
void span_forward(const SpanForward<double>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(span_forward_f64)(work, scratch);
}

}  // namespace stepwell::ops
#endif
