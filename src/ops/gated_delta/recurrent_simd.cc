// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gated_delta/recurrent_simd.cc"
#include "ops/gated_delta/recurrent_simd.h"

#include <algorithm>

#include "hwy/foreach_target.h"

#include "ops/column_block/column_block-inl.h"
#include "ops/gated_delta/prepare-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

// Vectors of a strip: enough to cover the latency of the two sums of a row; fewer where that many would not stay in the
// first-level cache.
inline constexpr int kStripVectors = 4, kNarrowVectors = 2;
inline constexpr std::int64_t kStripBytes = 32 << 10;

template <class T>
RowCoefficients<T> prepare_tile(const DeltaTileWork<T>& work, Arena& scratch) {
  const DeltaHead<T>& head = work.head;
  const std::int64_t K = head.K, size = work.tokens * K;
  RowCoefficients<T> in{work.tokens, K,       head.q.row(work.first), head.k.row(work.first),
                        nullptr,     nullptr, head.q.stride,          head.k.stride};
  if (head.g) {
    T* decays = scratch.allocate<T>(head.g.channels ? size : work.tokens);
    prepare_decays(head, work.first, work.tokens, decays);
    in.decay = decays;
  }
  if (head.l2norm) {
    T *q = scratch.allocate<T>(size), *k = scratch.allocate<T>(size);
    for (std::int64_t t = 0; t < work.tokens; ++t) {
      normalise_row(in.q + t * in.q_stride, K, q + t * K);
      normalise_row(in.k + t * in.k_stride, K, k + t * K);
    }
    in.q = q;
    in.k = k;
    in.q_stride = in.k_stride = K;
  }
  if (head.b) {
    T* erase = scratch.allocate<T>(size);
    for (std::int64_t t = 0; t < work.tokens; ++t) {
      erase_row(head, work.first + t, in.k + t * in.k_stride, erase + t * K);
    }
    in.erase = erase;
  }
  return in;
}

// The values, write gates and outputs of a strip; `left` columns of it are real.
template <class T>
struct StripColumns {
  HeadRows<const T> values, gates;
  bool gate_channels;
  HeadRows<T> outputs;
  HeadRows<const T> factors;
  Vec<T> scale;
  std::int64_t left;
  const RowsAhead& ahead;
  int part, parts;  // of the rows ahead

  HWY_INLINE void fetch(std::int64_t t) const { HWY_NAMESPACE::fetch(ahead, t, part, parts); }
  HWY_INLINE Vec<T> value(std::int64_t t, int v) const {
    const std::int64_t at = v * kWidth<T>;
    const Vec<T> value = load_part(values.row(t) + at, left - at);
    if (!gates) return value;
    return hn::Mul(gate_channels ? load_part(gates.row(t) + at, left - at) : set(*gates.row(t)), value);
  }
  HWY_INLINE void output(std::int64_t t, int v, Vec<T> sum) const {
    const std::int64_t at = v * kWidth<T>;
    if (!outputs) return;
    Vec<T> output = hn::Mul(scale, sum);
    if (factors) output = hn::Mul(set(*factors.row(t)), output);
    store_part<T>(output, outputs.row(t) + at, left - at);
  }
};

// NV vectors of columns from vector `at` of the work's columns on.
template <class T, int NV, Decays kDecays, bool kErase>
HWY_NOINLINE void run_columns(const DeltaTileWork<T>& work, const RowCoefficients<T>& in, const RowsAhead& ahead,
                              std::int64_t at) {
  constexpr int kPerUnit = Strip<T, NV>::kPerUnit;
  const DeltaHead<T>& head = work.head;
  const std::int64_t column = work.first_unit * kUnit + at * kWidth<T>;
  const std::int64_t parts = std::max<std::int64_t>(1, work.units * kPerUnit / NV);
  StripColumns<T> columns{{head.v.row(work.first) + column, head.v.stride},
                          {},
                          head.w.channels,
                          {},
                          {},
                          set(head.scale),
                          head.V - column,
                          ahead,
                          static_cast<int>(at / NV),
                          static_cast<int>(parts)};
  if (head.w) columns.gates = {head.w.row(work.first) + (head.w.channels ? column : 0), head.w.stride};
  if (work.o) columns.outputs = {work.o.row(work.first) + column, work.o.stride};
  if (work.o_factors) columns.factors = {work.o_factors.row(work.first), work.o_factors.stride};
  T* state = work.state + at / kPerUnit * head.K * kUnit + at % kPerUnit * kWidth<T>;
  run_strip<T, NV, kDecays, kErase>(in, Strip<T, NV>{state, head.K * kUnit}, columns);
}

template <class T, Decays kDecays, bool kErase>
void run_units(const DeltaTileWork<T>& work, const RowCoefficients<T>& in, const RowsAhead& ahead) {
  constexpr int kPerUnit = Strip<T, 1>::kPerUnit;  // vectors
  const std::int64_t vectors = work.units * kPerUnit;
  std::int64_t at = 0;
  const auto run = [&]<int NV>() {
    for (; at + NV <= vectors; at += NV) {
      run_columns<T, NV, kDecays, kErase>(work, in, ahead, at);
    }
  };
  constexpr std::int64_t kRowBytes = kStripVectors * kWidth<T> * sizeof(T);
  if (work.head.K * kRowBytes <= kStripBytes) run.template operator()<kStripVectors>();
  run.template operator()<kNarrowVectors>();
  if constexpr (kPerUnit < 2) run.template operator()<1>();
}

template <class T>
RowsAhead rows_ahead(const DeltaTileWork<T>& work) {
  const DeltaHead<T>& head = work.head;
  const std::int64_t next = work.first + work.tokens, column = work.first_unit * kUnit;
  const std::int64_t columns = std::min(work.units * kUnit, head.V - column);
  RowsAhead ahead;
  ahead.tokens = work.next_tokens;
  if (ahead.tokens == 0) return ahead;
  const auto add = [&](const auto& rows, std::int64_t at, std::int64_t length) {
    ahead.add(rows ? rows.row(next) + at : nullptr, rows.stride, length);
  };
  add(head.q, 0, head.K);
  add(head.k, 0, head.K);
  add(head.v, column, columns);
  if (head.g.channels) add(head.g, 0, head.K);
  if (head.b.channels) add(head.b, 0, head.K);
  if (head.w.channels) add(head.w, column, columns);
  add(work.o, column, columns);
  return ahead;
}

template <class T>
void run_recurrent_tile_t(const DeltaTileWork<T>& work, Arena& scratch) {
  ArenaScope scope(scratch);
  const RowCoefficients<T> in = prepare_tile(work, scratch);
  const RowsAhead ahead = rows_ahead(work);
  const auto run = [&]<bool kErase>() {
    if (!work.head.g) return run_units<T, Decays::None, kErase>(work, in, ahead);
    if (!work.head.g.channels) return run_units<T, Decays::PerHead, kErase>(work, in, ahead);
    run_units<T, Decays::PerChannel, kErase>(work, in, ahead);
  };
  if (work.head.b) return run.template operator()<true>();
  run.template operator()<false>();
}
void run_recurrent_tile_f32(const DeltaTileWork<float>& work, Arena& scratch) { run_recurrent_tile_t(work, scratch); }
void run_recurrent_tile_f64(const DeltaTileWork<double>& work, Arena& scratch) { run_recurrent_tile_t(work, scratch); }

float sum_squares_f32(const float* x, std::int64_t n) { return dot16(x, x, n); }
double sum_squares_f64(const double* x, std::int64_t n) { return dot16(x, x, n); }

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(run_recurrent_tile_f32);
HWY_EXPORT(run_recurrent_tile_f64);
HWY_EXPORT(sum_squares_f32);
HWY_EXPORT(sum_squares_f64);

void run_recurrent_tile(const DeltaTileWork<float>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(run_recurrent_tile_f32)(work, scratch);
}
void run_recurrent_tile(const DeltaTileWork<double>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(run_recurrent_tile_f64)(work, scratch);
}
float sum_squares(const float* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_squares_f32)(x, n); }
double sum_squares(const double* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_squares_f64)(x, n); }

}  // namespace stepwell::ops
#endif
