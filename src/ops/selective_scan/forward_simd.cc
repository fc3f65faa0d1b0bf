// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/selective_scan/forward_simd.cc"
#include "hwy/foreach_target.h"

#include "ops/selective_scan/selective_scan_simd.h"
#include "ops/selective_scan/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

// Wants the state alone.
template <class T>
struct StateSink {
  static constexpr bool kKeepsStates = false;
  const NextRows<T>& next;

  struct Token {
    HWY_INLINE void states(std::int64_t, const Vec<T>*) const {}
  };
  HWY_INLINE Token begin(std::int64_t, std::int64_t) const { return {}; }
  HWY_INLINE void output(std::int64_t, std::int64_t, Vec<T>) const {}
};

// Adds the skip connection, applies the gate and writes y.
template <class T>
struct OutputSink {
  static constexpr bool kKeepsStates = false;
  const ScanBlock<T>& in;
  const ScanTile<T>& tile;
  ScanRows<T> y;
  const NextRows<T>& next;

  HWY_INLINE typename StateSink<T>::Token begin(std::int64_t, std::int64_t) const { return {}; }
  HWY_INLINE void output(std::int64_t t, std::int64_t column, Vec<T> sum) const {
    if (in.skip) sum = fma(load(in.skip + column), load(tile.u + t * kBlock + column), sum);
    if (tile.gates) sum = hn::Mul(sum, load(tile.gates + t * kBlock + column));
    store_channels<T>(sum, y.row(t), column, in.width);
  }
};

template <class T, class Sink>
HWY_INLINE void run(const ScanForward<T>& work, const ScanTile<T>& tile, bool plain, const Sink& sink) {
  if (plain) {
    run_tile<T, true>(work.in, work.tokens, tile, work.h, sink);
  } else {
    run_tile<T, false>(work.in, work.tokens, tile, work.h, sink);
  }
}

template <class T>
void scan_forward_t(const ScanForward<T>& work, Arena& scratch) {
  ArenaScope scope(scratch);
  const ScanBlock<T>& in = work.in;
  const std::int64_t size = padded(work.tokens * kBlock);
  ScanTile<T> tile{};
  tile.u = scratch.allocate<T>(size);
  tile.steps = scratch.allocate<T>(size);
  tile.inputs = scratch.allocate<T>(size);
  if (in.z && work.y.data) tile.gates = scratch.allocate<T>(size);
  const bool plain = prepare_tile(in, work.tokens, tile, [&](std::int64_t t, std::int64_t column, Vec<T> z, Vec<T> e) {
    store<T>(silu(z, e), tile.gates + t * kBlock + column);
  });
  if (work.y.data) {
    run(work, tile, plain, OutputSink<T>{in, tile, work.y, work.next});
  } else {
    run(work, tile, plain, StateSink<T>{work.next});
  }
}
void scan_forward_f32(const ScanForward<float>& work, Arena& scratch) { scan_forward_t(work, scratch); }
void scan_forward_f64(const ScanForward<double>& work, Arena& scratch) { scan_forward_t(work, scratch); }

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(scan_forward_f32);
HWY_EXPORT(scan_forward_f64);

void scan_forward(const ScanForward<float>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(scan_forward_f32)(work, scratch);
}
void scan_forward(const ScanForward<double>& work, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(scan_forward_f64)(work, scratch);
}

}  // namespace stepwell::ops
#endif
