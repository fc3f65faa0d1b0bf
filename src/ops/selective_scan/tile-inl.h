// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// The recurrence over a tile of tokens of one block of channels: the only copy, used by the forward pass, by the
// checkpoints and by the replay of the backward pass, which therefore see the same bits.
#if defined(STEPWELL_OPS_SELECTIVE_SCAN_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_OPS_SELECTIVE_SCAN_TILE_INL_H_
#undef STEPWELL_OPS_SELECTIVE_SCAN_TILE_INL_H_
#else
#define STEPWELL_OPS_SELECTIVE_SCAN_TILE_INL_H_
#endif

#include <limits>

#include "ops/selective_scan/scan_block.h"
#include "simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

// Vectors of channels that pass through the tokens together (a strip), and their lanes.
inline constexpr int kVectors = 2;
template <class T>
inline constexpr std::int64_t kStrip = kVectors * kWidth<T>;

// The largest |exponent| of decay_in_range; smaller decays are 0.
template <class T>
inline constexpr T kFarExponent = sizeof(T) == 4 ? 125 : 1021;

// 2^(dt·rate) for |dt·rate| ≤ kFarExponent. Three operations split the product, which is never rounded, into
// integer and fraction. Relative error 1.2e-7 (double: 3e-16); exactly 1 for a product of 0.
template <class T>
HWY_INLINE Vec<T> decay_in_range(Vec<T> dt, Vec<T> rate) {
  using C = ExpConstants<T>;
  const Vec<T> shifted = fma(dt, rate, set<T>(C::kRound));
  const Vec<T> fraction = fma(dt, rate, hn::Sub(set<T>(C::kRound), shifted));
  const Vec<T> p = fma(polynomial(fraction, C::kExp2), fraction, set<T>(1));
  return from_bits<Vec<T>>(hn::Add(bits(p), hn::ShiftLeft<C::kMantissa>(bits(shifted))));
}

// 2^(dt·rate) for any dt and rate, the same bits where decay_in_range is defined. A step of 0 gives 1 whatever the
// rate.
template <class T>
HWY_INLINE Vec<T> decay(Vec<T> dt, Vec<T> rate) {
  using C = ExpConstants<T>;
  const Vec<T> shifted = fma(dt, rate, set<T>(C::kRound));
  Vec<T> a = decay_in_range<T>(dt, rate);
  a = hn::IfThenElse(hn::Lt(shifted, set<T>(C::kRound - kFarExponent<T>)), zero<T>(), a);
  a = hn::IfThenElse(hn::Lt(set<T>(C::kRound + kFarExponent<T>), shifted), set<T>(std::numeric_limits<T>::infinity()),
                     a);
  a = hn::IfThenElse(hn::Eq(shifted, shifted), a, shifted);
  return hn::IfThenElse(hn::Eq(dt, zero<T>()), set<T>(1), a);
}

// dt·A, 0 for a step of 0.
template <class T>
HWY_INLINE Vec<T> exponent(Vec<T> dt, Vec<T> A) {
  return hn::IfThenElse(hn::Eq(dt, zero<T>()), zero<T>(), hn::Mul(dt, A));
}

// φ(x) = (eˣ − 1)/x.
template <class V>
HWY_INLINE V phi(V x) {
  const V series = fma(x, fma(x, constant<V>(Lane<V>(1.0 / 6)), constant<V>(Lane<V>(0.5))), constant<V>(1));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), constant<V>(Lane<V>(1e-5))), series, hn::Div(expm1(x), x));
}

// Copies the block's channels of `tokens` rows to [tokens, kBlock], zeros beyond `width`. The long dependency chains of
// what follows then wait for no memory.
template <class T>
HWY_INLINE void gather(const T* rows, std::int64_t stride, std::int64_t width, std::int64_t tokens, T* out) {
  for (std::int64_t t = 0; t < tokens; ++t, rows += stride, out += kBlock) {
    std::int64_t c = 0;
    for (; c + kWidth<T> <= width; c += kWidth<T>) store<T>(load(rows + c), out + c);
    if (c < width) {
      store<T>(load_tail(rows + c, width - c), out + c);
      c += kWidth<T>;
    }
    for (; c < kBlock; c += kWidth<T>) store<T>(zero<T>(), out + c);
  }
}

// Channels column … column+kWidth−1 of a row of `width` channels.
template <class T>
HWY_INLINE void store_channels(Vec<T> v, T* row, std::int64_t column, std::int64_t width) {
  const std::int64_t left = width - column;
  if (left >= kWidth<T>) {
    store<T>(v, row + column);
  } else if (left > 0) {
    store_tail<T>(v, row + column, left);
  }
}

// Fetches row t of what comes next into the second-level cache. (Not inlined, GCC 12 takes it for a function without
// effect and drops the calls.)
template <class T>
HWY_INLINE void fetch(const NextRows<T>& next, std::int64_t t) {
  if (t >= next.tokens) return;
  for (std::int64_t i = 0; i < next.arrays; ++i) {
    const char* row = reinterpret_cast<const char*>(next.row[i] + t * next.stride[i]);
    for (std::size_t offset = 0; offset < kBlock * sizeof(T); offset += 64) __builtin_prefetch(row + offset, 0, 2);
  }
}

// The arrays of a tile, [tokens, kBlock].
template <class T>
struct ScanTile {
  T* u;
  T* steps;              // dt'
  T* inputs;             // dt'·u
  T *gates, *gate_exps;  // silu(z) and, in passing, exp(−|z|); null: not wanted
};

// Fills a tile. True if run_tile may take its plain path: B and C vary in time, the input weight is the step, and every
// decay is in range.
template <class T>
HWY_NOINLINE bool prepare_tile(const ScanBlock<T>& in, std::int64_t tokens, const ScanTile<T>& tile) {
  const std::int64_t size = tokens * kBlock;
  gather(in.u, in.u_stride, in.width, tokens, tile.u);
  gather(in.dt, in.dt_stride, in.width, tokens, tile.steps);
  if (tile.gates) gather(in.z, in.z_stride, in.width, tokens, tile.gates);
  // Two passes with the exponentials in between: one long chain of operations per number would leave the ports idle.
  for (std::int64_t i = 0; i < size; i += kWidth<T>) {
    const Vec<T> raw = hn::Add(load(tile.steps + i), load(in.dt_bias + i % kBlock));
    store<T>(raw, tile.steps + i);
    if (in.softplus) store<T>(exp_minus_abs(raw), tile.inputs + i);
    if (tile.gates) store<T>(exp_minus_abs(load(tile.gates + i)), tile.gate_exps + i);
  }
  auto largest = bits(zero<T>());  // as integers: beyond every number for a NaN or a negative step
  for (std::int64_t i = 0; i < size; i += kWidth<T>) {
    Vec<T> dt = load(tile.steps + i);
    if (in.softplus) dt = softplus(dt, load(tile.inputs + i));
    largest = hn::Max(largest, bits(dt));
    store<T>(dt, tile.steps + i);
    store<T>(hn::Mul(dt, load(tile.u + i)), tile.inputs + i);
    if (tile.gates) store<T>(silu(load(tile.gates + i), load(tile.gate_exps + i)), tile.gates + i);
  }
  HWY_ALIGN T lanes[kWidth<T>];
  store<T>(from_bits<Vec<T>>(largest), lanes);
  bool in_range = !in.zero_order && in.B_lanes == nullptr;
  for (T lane : lanes) in_range = in_range && lane >= 0 && lane <= in.largest_step;
  return in_range;
}

// Runs a tile from the state h. A Sink takes what a pass wants of it:
//   kKeepsStates                          the state after token t goes behind that before it, N·kBlock further on
//   begin(t, column).states(n, a, state)  kVectors vectors of decays and new states
//   output(t, column, y)                  one vector of Σ C·h
//   next                                  rows to fetch meanwhile
// kPlain: prepare_tile allowed it. Both paths give the same bits.
template <class T, bool kPlain, class Sink>
HWY_NOINLINE void run_tile(const ScanBlock<T>& in, std::int64_t tokens, const ScanTile<T>& tile, T* h_first,
                           const Sink& sink) {
  const std::int64_t N = in.N;
  for (std::int64_t c = 0; c < in.width; c += kStrip<T>) {
    const T* rates = in.rate + c;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const T *B = in.B + t * in.B_stride, *C = in.C + t * in.C_stride;
      T* h = h_first + c + (Sink::kKeepsStates ? t * N * kBlock : 0);
      T* h_next = Sink::kKeepsStates ? h + N * kBlock : h;
      if (c == 0) fetch(sink.next, t);
      const auto token = sink.begin(t, c);
      Vec<T> dt[kVectors], dx[kVectors], y[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        dt[v] = load(tile.steps + t * kBlock + c + v * kWidth<T>);
        dx[v] = load(tile.inputs + t * kBlock + c + v * kWidth<T>);
        y[v] = zero<T>();
      }
      for (std::int64_t n = 0; n < N; ++n) {
        Vec<T> a[kVectors], x[kVectors], k[kVectors], state[kVectors];
        // All loads before the stores: the compiler must take a store for one into B or C.
        if constexpr (kPlain) {
          const Vec<T> b = set(B[n]), each = set(C[n]);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) {
            a[v] = decay_in_range<T>(dt[v], load(rates + n * kBlock + v * kWidth<T>));
            x[v] = hn::Mul(dx[v], b);
            k[v] = each;
          }
        } else {
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) {
            const std::int64_t at = n * kBlock + v * kWidth<T>;
            a[v] = decay<T>(dt[v], load(rates + at));
            x[v] = in.zero_order ? hn::Mul(dx[v], phi(exponent<T>(dt[v], load(in.A + c + at)))) : dx[v];
            x[v] = hn::Mul(x[v], in.B_lanes ? load(in.B_lanes + c + at) : set(B[n]));
            k[v] = in.C_lanes ? load(in.C_lanes + c + at) : set(C[n]);
          }
        }
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          const std::int64_t at = n * kBlock + v * kWidth<T>;
          state[v] = fma(a[v], load(h + at), x[v]);
          store<T>(state[v], h_next + at);
          y[v] = fma(k[v], state[v], y[v]);
        }
        token.states(n, a, state);
      }
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sink.output(t, c + v * kWidth<T>, y[v]);
    }
  }
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
