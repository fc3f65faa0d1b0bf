// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gated_delta/chunk_forward_simd.cc"
#include "hwy/foreach_target.h"

#include "ops/gated_delta/chunk_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

// One chunk over `width` columns: 16 or 32, a unit or two. `rows` [3·chunk, width] is scratch.
template <class T>
void chunk_forward(const SpanForward<T>& work, std::int64_t c, std::int64_t column, std::int64_t width, T* rows) {
  const DeltaHead<T>& head = work.head;
  const ChunkFactors<T> f = work.chunk(c);
  const std::int64_t K = head.K, n = f.tokens, first = c * work.layout.chunk, unit = K * 16;
  T* S = work.state + column / 16 * unit;
  // Outputs, then values that become residuals.
  T *O = rows, *R = rows + n * width, *buffer = rows + 2 * n * width;
  // Next come the next chunk, or after the last one the next columns.
  const bool last = first + n == work.tokens;
  const std::int64_t next = last ? 0 : first + n, next_column = last ? column + width : column;
  fetch_columns<const T>(head.v, next, n, next_column, width);
  if (head.w.channels) fetch_columns<const T>(head.w, next, n, next_column, width);
  fetch_columns<T>(work.o, next, n, next_column, width);
  load_columns<T>({head.v.row(first), head.v.stride}, n, column, width, head.V, R);
  if (head.w) {
    DeltaHead<T> from_first = head;
    from_first.w.data = head.w.row(first);
    load_write_gates(from_first, n, column, width, buffer);
    multiply(buffer, R, n * width, R);
  }
  TileProduct<T> read{f.read, f.Kp, 1, S, 16, K, nullptr, 0, O, width};
  read.b_panel = unit;
  if (f.read_scale == nullptr && f.erases) {
    std::fill_n(O, n * width, T(0));
    read.start = O;
    read.start_row = width;
    tile_product<T>(read, 2 * n, width);
  } else {
    read.out_scale = f.read_scale;
    tile_product<T>(read, n, width);
    if (f.erases) {
      read.a += n * f.Kp;
      read.out = buffer;
      read.out_scale = nullptr;
      tile_product<T>(read, n, width);
      add_rows(buffer, f.read_scale + n, n, width, R);
    }
  }
  if (f.erases) solve_residuals(f, width, R);
  if (work.o) {
    read_residuals(f, width, R, O);
    const HeadRows<const T> factors{work.o_factors ? work.o_factors.row(first) : nullptr, work.o_factors.stride};
    store_columns<T>(O, {work.o.row(first), work.o.stride}, n, column, width, head.V, factors);
  }
  const T* written = scaled_rows(R, f.write_scale, n, width, buffer);
  TileProduct<T> write{f.write, 1, f.Kp, written, width, n, S, 16, S, 16, f.decay};
  write.out_panel = unit;
  tile_product<T>(write, K, width);
}

template <class T>
void span_forward_t(const SpanForward<T>& work, Arena& scratch) {
  ArenaScope scope(scratch);
  T* rows = scratch.allocate<T>(3 * work.layout.chunk * 32);
  for (std::int64_t unit = 0; unit < work.units; unit += 2) {
    const std::int64_t width = std::min<std::int64_t>(2, work.units - unit) * 16;
    for (std::int64_t c = 0; c < work.layout.chunks(work.tokens); ++c) {
      chunk_forward(work, c, unit * 16, width, rows);
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
