// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// The inner loop of all matrix memories: tokens pass over a strip of value columns of a state [K, columns], which
// stays in the first-level cache. Lanes run over columns and the loop over rows in increasing order, so that the bits
// of a column depend on nothing but the column: not on the strip, the tile, the split of a sequence or the threads.
#if defined(STEPWELL_OPS_COLUMN_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_OPS_COLUMN_BLOCK_INL_H_
#undef STEPWELL_OPS_COLUMN_BLOCK_INL_H_
#else
#define STEPWELL_OPS_COLUMN_BLOCK_INL_H_
#endif

#include <cstdint>

#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

// A packed state: units of 16 columns, [units, K, 16].
inline constexpr int kUnit = 16;

enum class Decays { None, PerHead, PerChannel };

// The coefficients of a tile of tokens: what the rows of the state meet. `decay` has a number per token, or K of them.
template <class T>
struct RowCoefficients {
  std::int64_t tokens, K;
  const T *q, *k, *decay, *erase;  // erase: rows of K
  std::int64_t q_stride, k_stride;
};

// Rows that the next tile of tokens will need. With tokens outermost a head's rows lie far apart, and no hardware
// prefetcher follows them.
struct RowsAhead {
  static constexpr int kMost = 8;
  struct Rows {
    const char* first;
    std::int64_t stride, bytes;
  };
  Rows rows[kMost];
  int count = 0;
  std::int64_t tokens = 0;

  template <class T>
  void add(const T* first, std::int64_t stride, std::int64_t length) {
    if (first) {
      rows[count++] = {reinterpret_cast<const char*>(first), stride * static_cast<std::int64_t>(sizeof(T)),
                       length * static_cast<std::int64_t>(sizeof(T))};
    }
  }
};

// Fetches row t of every `parts`-th array, from array `part` on, into the second-level cache. (Not inlined, GCC 12
// takes it for a function without effect and drops the calls.)
HWY_INLINE void fetch(const RowsAhead& ahead, std::int64_t t, int part, int parts) {
  if (t >= ahead.tokens) return;
  for (int i = part; i < ahead.count; i += parts) {
    const char* row = ahead.rows[i].first + t * ahead.rows[i].stride;
    for (std::int64_t at = 0; at < ahead.rows[i].bytes; at += 64) __builtin_prefetch(row + at, 0, 2);
  }
}

// NV vectors of neighbouring columns of a packed state.
template <class T, int NV>
struct Strip {
  static constexpr int kPerUnit = kUnit / kWidth<T> > 0 ? kUnit / kWidth<T> : 1;
  T* state;
  std::int64_t unit;  // elements from unit to unit

  // Vector v of row d.
  HWY_INLINE T* at(std::int64_t d, int v) const {
    return state + (v / kPerUnit) * unit + d * kUnit + (v % kPerUnit) * kWidth<T>;
  }
};

// S̄ᵀe of one token, S̄ = decayed state; the state is left as it is.
template <class T, int NV, Decays kDecays>
HWY_INLINE void read_pass(const Strip<T, NV>& S, std::int64_t K, const T* decay, const T* erase, Vec<T> (&read)[NV]) {
  const Vec<T> head_decay = kDecays == Decays::PerHead ? set(*decay) : zero<T>();
#pragma GCC unroll 8
  for (int v = 0; v < NV; ++v) read[v] = zero<T>();
  for (std::int64_t d = 0; d < K; ++d) {
    const Vec<T> e = set(erase[d]), a = kDecays == Decays::PerChannel ? set(decay[d]) : head_decay;
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      Vec<T> x = load(S.at(d, v));
      if constexpr (kDecays != Decays::None) x = hn::Mul(a, x);
      read[v] = fma(e, x, read[v]);
    }
  }
}

// One token: decays the state if it is not yet, writes k uᵀ, reads out qᵀS to out; and if there is a next token, decays
// for it and reads what it will erase.
template <class T, int NV, Decays kDecays, bool kDecayFirst, bool kNext>
HWY_INLINE void write_pass(const Strip<T, NV>& S, std::int64_t K, const T* q, const T* k, const T* decay,
                           const T* next_decay, const T* next_erase, const Vec<T> (&u)[NV], Vec<T> (&out)[NV],
                           Vec<T> (&read)[NV]) {
  constexpr bool kHead = kDecays == Decays::PerHead, kChannels = kDecays == Decays::PerChannel;
  const Vec<T> head_decay = kHead && kDecayFirst ? set(*decay) : zero<T>();
  const Vec<T> head_next = kHead && kNext ? set(*next_decay) : zero<T>();
#pragma GCC unroll 8
  for (int v = 0; v < NV; ++v) {
    out[v] = zero<T>();
    if constexpr (kNext) read[v] = zero<T>();
  }
  for (std::int64_t d = 0; d < K; ++d) {
    const Vec<T> kd = set(k[d]), qd = set(q[d]);
    const Vec<T> a = kChannels && kDecayFirst ? set(decay[d]) : head_decay;
    const Vec<T> next_a = kChannels && kNext ? set(next_decay[d]) : head_next;
    const Vec<T> e = kNext ? set(next_erase[d]) : zero<T>();
    // All loads of a row before its stores: units lie a multiple of 4 KiB apart for many K, and a load waits for an
    // earlier store to an address with the same low 12 bits.
    Vec<T> x[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) x[v] = load(S.at(d, v));
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      if constexpr (kDecays != Decays::None && kDecayFirst) x[v] = hn::Mul(a, x[v]);
      x[v] = fma(kd, u[v], x[v]);
      out[v] = fma(qd, x[v], out[v]);
      if constexpr (kNext) {
        if constexpr (kDecays != Decays::None) x[v] = hn::Mul(next_a, x[v]);
        read[v] = fma(e, x[v], read[v]);
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) store<T>(x[v], S.at(d, v));
  }
}

// A tile of tokens over one strip. columns.value(t, v) gives vector v of what token t writes before the erased is taken
// off, columns.output(t, v, sum) takes qᵀS, columns.fetch(t) may fetch what comes next. With kErase the written is
// value − S̄ᵀe (the delta rule).
template <class T, int NV, Decays kDecays, bool kErase, class Columns>
HWY_INLINE void run_strip(const RowCoefficients<T>& in, const Strip<T, NV>& S, const Columns& columns) {
  Vec<T> u[NV], out[NV], read[NV];
  const std::int64_t decay_row = kDecays == Decays::PerChannel ? in.K : 1, last = in.tokens - 1;
  if constexpr (kErase) read_pass<T, NV, kDecays>(S, in.K, in.decay, in.erase, read);
  for (std::int64_t t = 0; t <= last; ++t) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      u[v] = columns.value(t, v);
      if constexpr (kErase) u[v] = hn::Sub(u[v], read[v]);
    }
    columns.fetch(t);
    const T *q = in.q + t * in.q_stride, *k = in.k + t * in.k_stride;
    const T* decay = kDecays == Decays::None ? nullptr : in.decay + t * decay_row;
    if constexpr (!kErase) {
      write_pass<T, NV, kDecays, true, false>(S, in.K, q, k, decay, nullptr, nullptr, u, out, read);
    } else {
      const T *next_decay = decay ? decay + decay_row : nullptr, *next_erase = in.erase + (t + 1) * in.K;
      if (t == 0 && t < last) {
        write_pass<T, NV, kDecays, true, true>(S, in.K, q, k, decay, next_decay, next_erase, u, out, read);
      } else if (t < last) {
        write_pass<T, NV, kDecays, false, true>(S, in.K, q, k, decay, next_decay, next_erase, u, out, read);
      } else if (t == 0) {
        write_pass<T, NV, kDecays, true, false>(S, in.K, q, k, decay, nullptr, nullptr, u, out, read);
      } else {
        write_pass<T, NV, kDecays, false, false>(S, in.K, q, k, decay, nullptr, nullptr, u, out, read);
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) columns.output(t, v, out[v]);
  }
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
