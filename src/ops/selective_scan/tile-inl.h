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

// States of a strip that advance together, as many as the registers hold.
inline constexpr int kStates = HWY_TARGET == HWY_AVX3 ? 4 : 1;

// The largest |exponent| of decays_in_range; smaller decays are 0.
template <class T>
inline constexpr T kFarExponent = sizeof(T) == 4 ? 125 : 1021;

// a[i] = 2^(dt[i % kVectors]·rate[i]) for |dt·rate| ≤ kFarExponent. Three operations split the product, which is never
// rounded, into integer and fraction. Relative error 1.2e-7 (double: 3e-16); exactly 1 for a product of 0.
template <class V, int K>
HWY_INLINE void decays_in_range(const V* dt, const V (&rate)[K], V (&a)[K]) {
  using C = ExpConstants<Lane<V>>;
  const V round = constant<V>(C::kRound);
  V shifted[K], fraction[K];
#pragma GCC unroll 8
  for (int i = 0; i < K; ++i) shifted[i] = fma(dt[i % kVectors], rate[i], round);
#pragma GCC unroll 8
  for (int i = 0; i < K; ++i) fraction[i] = fma(dt[i % kVectors], rate[i], hn::Sub(round, shifted[i]));
  polynomials(fraction, C::kExp2, a);
#pragma GCC unroll 8
  for (int i = 0; i < K; ++i) a[i] = fma(a[i], fraction[i], constant<V>(1));
#pragma GCC unroll 8
  for (int i = 0; i < K; ++i) {
    a[i] = from_bits<V>(hn::Add(bits(a[i]), hn::ShiftLeft<C::kMantissa>(bits(shifted[i]))));
  }
}

// 2^(dt·rate) for any dt and rate, the same bits where decays_in_range is defined. A step of 0 gives 1 whatever the
// rate.
template <class T>
HWY_INLINE Vec<T> decay(Vec<T> dt, Vec<T> rate) {
  using C = ExpConstants<T>;
  const Vec<T> shifted = fma(dt, rate, set<T>(C::kRound));
  Vec<T> in_range[1];
  decays_in_range(&dt, {rate}, in_range);
  Vec<T> a = hn::IfThenElse(hn::Lt(shifted, set<T>(C::kRound - kFarExponent<T>)), zero<T>(), in_range[0]);
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
  T* steps;   // dt'
  T* inputs;  // dt'·u
  T* gates;   // exp(−|z|), which a pass may overwrite with what it makes of it; null: not wanted
  T* slopes;  // d dt' / d dt with softplus; null: not wanted
};

// Fills steps with dt + bias, inputs with its exp(−|·|), and gates.
template <bool kGated, class T>
HWY_INLINE void prepare_exponentials(const ScanBlock<T>& in, std::int64_t tokens, const ScanTile<T>& tile) {
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t c = 0; c < kBlock; c += kStrip<T>) {
      Vec<T> x[kGated ? 2 * kVectors : kVectors], e[kGated ? 2 * kVectors : kVectors];
      const std::int64_t at = t * kBlock + c;
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const std::int64_t column = c + v * kWidth<T>;
        x[v] = hn::Add(load_part(in.dt + t * in.dt_stride + column, in.width - column), load(in.dt_bias + column));
        if constexpr (kGated) x[v + kVectors] = load_part(in.z + t * in.z_stride + column, in.width - column);
      }
      exp_minus_abs(x, e);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        store<T>(x[v], tile.steps + at + v * kWidth<T>);
        store<T>(e[v], tile.inputs + at + v * kWidth<T>);
        if constexpr (kGated) store<T>(e[v + kVectors], tile.gates + at + v * kWidth<T>);
      }
    }
  }
}

// Fills a tile and calls gate(t, column, z, exp(−|z|)) for its vectors if gates are wanted. True if run_tile may take
// its plain path: B and C vary in time, the input weight is the step, and every decay is in range.
template <class T, class Gate>
HWY_NOINLINE bool prepare_tile(const ScanBlock<T>& in, std::int64_t tokens, const ScanTile<T>& tile, const Gate& gate) {
  // Two passes with the exponentials in between, each of several numbers side by side: one long chain of operations per
  // number would leave the ports idle.
  if (tile.gates) {
    prepare_exponentials<true>(in, tokens, tile);
  } else {
    prepare_exponentials<false>(in, tokens, tile);
  }
  auto largest = bits(zero<T>());  // as integers: beyond every number for a NaN or a negative step
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t c = 0; c < kBlock; c += kStrip<T>) {
      Vec<T> dt[kVectors], e[kVectors], u[kVectors];
      const std::int64_t at = t * kBlock + c;
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const std::int64_t column = c + v * kWidth<T>, left = in.width - column;
        dt[v] = load(tile.steps + at + v * kWidth<T>);
        e[v] = load(tile.inputs + at + v * kWidth<T>);
        u[v] = load_part(in.u + t * in.u_stride + column, left);
        if (tile.gates)
          gate(t, column, load_part(in.z + t * in.z_stride + column, left), load(tile.gates + at + v * kWidth<T>));
        if (tile.slopes) store<T>(softplus_derivative(dt[v], e[v]), tile.slopes + at + v * kWidth<T>);
      }
      if (in.softplus) softplus(dt, e, dt);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        largest = hn::Max(largest, bits(dt[v]));
        store<T>(dt[v], tile.steps + at + v * kWidth<T>);
        store<T>(hn::Mul(dt[v], u[v]), tile.inputs + at + v * kWidth<T>);
        store<T>(u[v], tile.u + at + v * kWidth<T>);
      }
    }
  }
  HWY_ALIGN T lanes[kWidth<T>];
  store<T>(from_bits<Vec<T>>(largest), lanes);
  bool in_range = !in.zero_order && in.B_lanes == nullptr;
  for (T lane : lanes) in_range = in_range && lane >= 0 && lane <= in.largest_step;
  return in_range;
}

// The decays of a strip's states whose rates begin at in.rate + first.
template <bool kPlain, class T, int K>
HWY_INLINE void strip_decays(const ScanBlock<T>& in, std::int64_t first, const Vec<T>* dt, Vec<T> (&a)[K]) {
  Vec<T> rate[K];
#pragma GCC unroll 8
  for (int i = 0; i < K; ++i) rate[i] = load(in.rate + first + i / kVectors * kBlock + i % kVectors * kWidth<T>);
  if constexpr (kPlain) {
    decays_in_range(dt, rate, a);
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < K; ++i) a[i] = decay<T>(dt[i % kVectors], rate[i]);
  }
}

// One token of a strip.
template <class T>
struct StripToken {
  std::int64_t column;
  const T *B, *C;
  T *h, *h_next;
  Vec<T> dt[kVectors], dx[kVectors], y[kVectors];
};

// States n … n + kCount − 1 of a token of a strip.
template <bool kPlain, int kCount, class T, class Observer>
HWY_INLINE void advance(const ScanBlock<T>& in, std::int64_t n, StripToken<T>& token, const Observer& observer) {
  constexpr int K = kCount * kVectors;
  static_assert(kPlain || kCount == 1);
  const std::int64_t first = n * kBlock + token.column;
  Vec<T> a[K], x[K], k[K], state[K];
  strip_decays<kPlain>(in, first, token.dt, a);
  // All loads before the stores: the compiler must take a store for one into B or C.
  if constexpr (kPlain) {
#pragma GCC unroll 8
    for (int i = 0; i < K; ++i) {
      x[i] = hn::Mul(token.dx[i % kVectors], set(token.B[n + i / kVectors]));
      k[i] = set(token.C[n + i / kVectors]);
    }
  } else {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const std::int64_t at = first + v * kWidth<T>;
      x[v] = in.zero_order ? hn::Mul(token.dx[v], phi(exponent<T>(token.dt[v], load(in.A + at)))) : token.dx[v];
      x[v] = hn::Mul(x[v], in.B_lanes ? load(in.B_lanes + at) : set(token.B[n]));
      k[v] = in.C_lanes ? load(in.C_lanes + at) : set(token.C[n]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < K; ++i) {
    state[i] = fma(a[i], load(token.h + first + i / kVectors * kBlock + i % kVectors * kWidth<T>), x[i]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < K; ++i) {
    store<T>(state[i], token.h_next + first + i / kVectors * kBlock + i % kVectors * kWidth<T>);
    token.y[i % kVectors] = fma(k[i], state[i], token.y[i % kVectors]);
  }
#pragma GCC unroll 4
  for (int j = 0; j < kCount; ++j) observer.states(n + j, state + j * kVectors);
}

// Runs a tile from the state h. A Sink takes what a pass wants of it:
//   kKeepsStates                       the state after token t goes behind that before it, N·kBlock further on
//   begin(t, column).states(n, state)  kVectors vectors of new states
//   output(t, column, y)               one vector of Σ C·h
//   next                               rows to fetch meanwhile
// kPlain: prepare_tile allowed it. Both paths give the same bits.
template <class T, bool kPlain, class Sink>
HWY_NOINLINE void run_tile(const ScanBlock<T>& in, std::int64_t tokens, const ScanTile<T>& tile, T* h_first,
                           const Sink& sink) {
  constexpr int kTogether = kPlain ? kStates : 1;
  for (std::int64_t c = 0; c < in.width; c += kStrip<T>) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      StripToken<T> token;
      token.column = c;
      token.B = in.B + t * in.B_stride;
      token.C = in.C + t * in.C_stride;
      token.h = h_first + (Sink::kKeepsStates ? t * in.N * kBlock : 0);
      token.h_next = Sink::kKeepsStates ? token.h + in.N * kBlock : token.h;
      if (c == 0) fetch(sink.next, t);
      const auto observer = sink.begin(t, c);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        token.dt[v] = load(tile.steps + t * kBlock + c + v * kWidth<T>);
        token.dx[v] = load(tile.inputs + t * kBlock + c + v * kWidth<T>);
        token.y[v] = zero<T>();
      }
      std::int64_t n = 0;
      for (; n + kTogether <= in.N; n += kTogether) advance<kPlain, kTogether>(in, n, token, observer);
      for (; n < in.N; ++n) advance<kPlain, 1>(in, n, token, observer);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sink.output(t, c + v * kWidth<T>, token.y[v]);
    }
  }
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
