// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gated_delta/chunk_factors_simd.cc"
#include "hwy/foreach_target.h"

#include "ops/column_block/tile_product-inl.h"
#include "ops/gated_delta/chunk_simd.h"
#include "ops/gated_delta/prepare-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

// Rows of q or k, normalised if asked, to [tokens, Kp] with zeros beyond K.
template <class T>
void load_keys(const DeltaHead<T>& head, HeadRows<const T> rows, std::int64_t first, const ChunkFactors<T>& f, T* out,
               T* factor) {
  for (std::int64_t t = 0; t < f.tokens; ++t, out += f.Kp) {
    const T* x = rows.row(first + t);
    if (head.l2norm) factor[t] = 1 / std::sqrt(dot16(x, x, head.K) + T(1e-6));
    for (std::int64_t d = 0; d < f.Kp; d += kWidth<T>) {
      const Vec<T> v = load_part(x + d, head.K - d);
      store<T>(head.l2norm ? hn::Mul(set(factor[t]), v) : v, out + d);
    }
  }
}

template <class T>
void load_erase(const DeltaHead<T>& head, std::int64_t first, const ChunkFactors<T>& f) {
  for (std::int64_t t = 0; t < f.tokens; ++t) {
    const T *b = head.b.row(first + t), *k = f.k + t * f.Kp;
    for (std::int64_t d = 0; d < f.Kp; d += kWidth<T>) {
      const Vec<T> gate = head.b.channels ? load_part(b + d, head.K - d) : set(*b);
      store<T>(hn::Mul(gate, load(k + d)), f.e + t * f.Kp + d);
    }
  }
}

template <class T>
void load_decays(const DeltaHead<T>& head, std::int64_t first, const ChunkFactors<T>& f) {
  if (!head.g) {
    std::fill_n(f.alpha, f.tokens, T(1));
    return;
  }
  if (!head.g.channels) return prepare_decays(head, first, f.tokens, f.alpha);
  const Vec<T> slope = exp(set(head.A_log));
  for (std::int64_t t = 0; t < f.tokens; ++t) {
    const T* g = head.g.row(first + t);
    for (std::int64_t d = 0; d < f.Kp; d += kWidth<T>) {
      const Vec<T> bias = head.dt_bias ? load_part(head.dt_bias + d, head.K - d) : zero<T>();
      store<T>(exp(log_decay(head, load_part(g + d, head.K - d), bias, slope)), f.alpha + t * f.Kp + d);
    }
  }
}

// What the tokens read, erase and write with, decays per channel.
template <class T>
void decay_keys(const DeltaHead<T>& head, const ChunkFactors<T>& f) {
  const Vec<T> scale = set(head.scale);
  for (std::int64_t d = 0; d < f.Kp; d += kWidth<T>) {
    Vec<T> from_start = set(T(1)), to_end = set(T(1));
    for (std::int64_t t = 0; t < f.tokens; ++t) {
      const std::int64_t at = t * f.Kp + d;
      from_start = hn::Mul(from_start, load(f.alpha + at));
      store<T>(hn::Mul(from_start, hn::Mul(scale, load(f.q + at))), f.read + at);
      if (f.erases) store<T>(hn::Neg(hn::Mul(from_start, load(f.e + at))), f.read + f.tokens * f.Kp + at);
    }
    store<T>(from_start, f.decay + d);
    for (std::int64_t t = f.tokens - 1; t >= 0; --t) {
      const std::int64_t at = t * f.Kp + d;
      store<T>(hn::Mul(to_end, load(f.k + at)), f.write + at);
      to_end = hn::Mul(to_end, load(f.alpha + at));
    }
  }
}

// The same where a head has one decay per token: factors of whole rows.
template <class T>
void decay_rows(const DeltaHead<T>& head, std::int64_t first, const ChunkFactors<T>& f) {
  T from_start = 1, to_end = 1;
  for (std::int64_t t = 0; t < f.tokens; ++t) {
    from_start *= f.alpha[t];
    f.read_scale[t] = head.scale * from_start;
    if (f.erases) f.read_scale[f.tokens + t] = f.e ? -from_start : -from_start * *head.b.row(first + t);
  }
  std::fill_n(f.decay, f.Kp, from_start);
  for (std::int64_t t = f.tokens - 1; t >= 0; --t) {
    f.write_scale[t] = to_end;
    to_end *= f.alpha[t];
  }
}

// The 16 lanes of Σ x·y and, with erase, of Σ x·z.
template <class T, bool kErase>
struct PairSums {
  SixteenLanes<T> read, erase;

  HWY_INLINE PairSums() {
#pragma GCC unroll 16
    for (int l = 0; l < read.kVectors; ++l) read.v[l] = erase.v[l] = zero<T>();
  }
  HWY_INLINE void add(int l, Vec<T> key, Vec<T> q, Vec<T> e) {
    read.v[l] = fma(q, key, read.v[l]);
    if constexpr (kErase) erase.v[l] = fma(e, key, erase.v[l]);
  }
};

// Sixteen rows of 16 lanes, each folded 8, 4, 2, 1 (simd/reduce-inl.h), to the lanes of sums[0…15]; `columns` [16, 16].
template <class T>
HWY_INLINE void fold_block(const T* rows, T* columns) {
  transpose_block(rows, 16, columns, 16);
#pragma GCC unroll 4
  for (int half = 8; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half * 16; i += kWidth<T>) {
      store<T>(hn::Add(load(columns + i), load(columns + half * 16 + i)), columns + i);
    }
  }
}

// Scores inside block rows first … first+n−1, decays per channel. `keys` [16, Kp]: keys decayed up to the row at hand.
template <class T, bool kErase>
void diagonal_scores(const DeltaHead<T>& head, const ChunkFactors<T>& f, std::int64_t first, std::int64_t n, T* keys) {
  const std::int64_t Kp = f.Kp;
  HWY_ALIGN T read[16 * 16] = {}, erase[16 * 16] = {}, columns[16 * 16];  // the lanes of a row's sums
  const auto keep = [&](std::int64_t j, const PairSums<T, kErase>& sums) HWY_ATTR {
#pragma GCC unroll 16
    for (int l = 0; l < sums.read.kVectors; ++l) {
      store<T>(sums.read.v[l], read + j * 16 + l * kWidth<T>);
      if constexpr (kErase) store<T>(sums.erase.v[l], erase + j * 16 + l * kWidth<T>);
    }
  };
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t row = (first + i) * Kp;
    const T *q = f.q + row, *e = kErase ? f.e + row : nullptr, *alpha = f.alpha + row;
    std::int64_t j = 0;
    for (; j + 2 <= i; j += 2) {
      T* key = keys + j * Kp;
      PairSums<T, kErase> sums, next;
      for (std::int64_t d = 0; d < Kp; d += 16) {
#pragma GCC unroll 16
        for (int l = 0; l < sums.read.kVectors; ++l) {
          const std::int64_t at = d + l * kWidth<T>;
          const Vec<T> a = load(alpha + at), x = load(q + at), y = kErase ? load(e + at) : zero<T>();
          const Vec<T> k0 = hn::Mul(a, load(key + at)), k1 = hn::Mul(a, load(key + Kp + at));
          store<T>(k0, key + at);
          store<T>(k1, key + Kp + at);
          sums.add(l, k0, x, y);
          next.add(l, k1, x, y);
        }
      }
      keep(j, sums);
      keep(j + 1, next);
    }
    // The last of an odd number of keys, and the token's own, which is not decayed.
    PairSums<T, kErase> sums, own;
    T *key = keys + j * Kp, *own_key = keys + i * Kp;
    for (std::int64_t d = 0; d < Kp; d += 16) {
#pragma GCC unroll 16
      for (int l = 0; l < sums.read.kVectors; ++l) {
        const std::int64_t at = d + l * kWidth<T>;
        const Vec<T> x = load(q + at), y = kErase ? load(e + at) : zero<T>();
        if (j < i) {
          const Vec<T> k0 = hn::Mul(load(alpha + at), load(key + at));
          store<T>(k0, key + at);
          sums.add(l, k0, x, y);
        }
        const Vec<T> k1 = load(f.k + row + at);
        store<T>(k1, own_key + at);
        own.add(l, k1, x, y);
      }
    }
    if (j < i) keep(j, sums);
    keep(i, own);
    // What lies beyond the diagonal is nobody's.
    const std::int64_t at = (first + i) * f.score_row + first;
    fold_block(read, columns);
    for (std::int64_t c = 0; c < 16; c += kWidth<T>) {
      store<T>(hn::Mul(set(head.scale), load(columns + c)), f.scores + at + c);
    }
    if constexpr (!kErase) continue;
    fold_block(erase, columns);
    for (std::int64_t c = 0; c < 16; c += kWidth<T>) store<T>(hn::Neg(load(columns + c)), f.erase_scores + at + c);
  }
}

// [n, Kp] rows to panels [Kp][16] of tokens, zeros beyond n.
template <class T>
void token_panel(const T* rows, std::int64_t n, std::int64_t Kp, T* panel) {
  HWY_ALIGN T block[16 * 16];
  for (std::int64_t d = 0; d < Kp; d += 16) {
    const T* from = rows + d;
    std::int64_t from_row = Kp;
    if (n < 16) {
      std::fill_n(block, 16 * 16, T(0));
      for (std::int64_t t = 0; t < n; ++t) std::copy_n(rows + t * Kp + d, 16, block + t * 16);
      from = block;
      from_row = 16;
    }
    transpose_block(from, from_row, panel + d * 16, 16);
  }
}

// Scores of block rows on the blocks before them, decays per channel: exp(G_i − G_j) is the product of what is left
// of j's block, the blocks between, and i's block up to i.
template <class T>
void distant_scores(const DeltaHead<T>& head, const ChunkFactors<T>& f, Arena& scratch) {
  const std::int64_t Kp = f.Kp, blocks = (f.tokens + 15) / 16, kinds = f.erases ? 2 : 1;
  T* rows = scratch.allocate<T>(kinds * 16 * Kp);
  T* between = scratch.allocate<T>(Kp);
  T* ends = scratch.allocate<T>(16 * Kp);
  T* panels = scratch.allocate<T>(blocks * 16 * Kp);
  for (std::int64_t p = 0; p < blocks; ++p) {
    const std::int64_t first = p * 16, n = std::min<std::int64_t>(16, f.tokens - first);
    for (std::int64_t d = 0; d < Kp; d += kWidth<T>) {
      Vec<T> decay = set(T(1)), rest = decay;
      for (std::int64_t t = 0; t < n; ++t) {
        const std::int64_t at = (first + t) * Kp + d;
        decay = hn::Mul(decay, load(f.alpha + at));
        store<T>(hn::Mul(decay, hn::Mul(set(head.scale), load(f.q + at))), rows + t * Kp + d);
        if (f.erases) store<T>(hn::Neg(hn::Mul(decay, load(f.e + at))), rows + (n + t) * Kp + d);
      }
      for (std::int64_t t = n - 1; t >= 0; --t) {
        const std::int64_t at = (first + t) * Kp + d;
        store<T>(hn::Mul(rest, load(f.k + at)), ends + t * Kp + d);
        rest = hn::Mul(rest, load(f.alpha + at));
      }
      store<T>(decay, between + d);
    }
    for (std::int64_t m = 0; m < p; ++m) {
      T* panel = panels + m * 16 * Kp;
      const std::int64_t at = first * f.score_row + m * 16;
      tile_product<T>({rows, Kp, 1, panel, 16, Kp, nullptr, 0, f.scores + at, f.score_row}, n, 16);
      if (f.erases) {
        tile_product<T>({rows + n * Kp, Kp, 1, panel, 16, Kp, nullptr, 0, f.erase_scores + at, f.score_row}, n, 16);
      }
      for (std::int64_t d = 0; d < Kp; ++d) {
        const Vec<T> decay = set(between[d]);
#pragma GCC unroll 16
        for (int l = 0; l < 16; l += kWidth<T>) store<T>(hn::Mul(decay, load(panel + d * 16 + l)), panel + d * 16 + l);
      }
    }
    token_panel(ends, n, Kp, panels + p * 16 * Kp);
  }
}

// Scores of undecayed keys.
template <class T>
void plain_scores(const ChunkFactors<T>& f, Arena& scratch) {
  const std::int64_t Kp = f.Kp, row = f.score_row;
  T* panel = scratch.allocate<T>(16 * Kp);
  for (std::int64_t first = 0; first < f.tokens; first += 16) {
    token_panel(f.k + first * Kp, std::min<std::int64_t>(16, f.tokens - first), Kp, panel);
    const std::int64_t at = first * row + first, rows = f.tokens - first;
    tile_product<T>({f.q + first * Kp, Kp, 1, panel, 16, Kp, nullptr, 0, f.plain_scores + at, row}, rows, 16);
    if (!f.erases) continue;
    const T* erase = (f.e ? f.e : f.k) + first * Kp;
    tile_product<T>({erase, Kp, 1, panel, 16, Kp, nullptr, 0, f.plain_erase_scores + at, row}, rows, 16);
  }
}

// Scores with one decay per token: those of undecayed keys, times the decay from token to token.
template <class T>
void head_scores(const DeltaHead<T>& head, std::int64_t first, const ChunkFactors<T>& f, Arena& scratch) {
  const std::int64_t row = f.score_row;
  T* decays = scratch.allocate<T>(row);  // from token j to the one at hand
  std::fill_n(decays, row, T(0));
  const Vec<T> scale = set(head.scale);
  for (std::int64_t i = 0; i < f.tokens; ++i) {
    const Vec<T> alpha = set(f.alpha[i]), erase = set(f.erases && !f.e ? -*head.b.row(first + i) : T(-1));
    const std::int64_t at = i * row;
    for (std::int64_t j = 0; j <= i; j += kWidth<T>) store<T>(hn::Mul(alpha, load(decays + j)), decays + j);
    decays[i] = 1;
    for (std::int64_t j = 0; j <= i; j += kWidth<T>) {
      const Vec<T> decay = load(decays + j);
      store<T>(hn::Mul(hn::Mul(scale, decay), load(f.plain_scores + at + j)), f.scores + at + j);
      if (!f.erases) continue;
      store<T>(hn::Mul(hn::Mul(erase, decay), load(f.plain_erase_scores + at + j)), f.erase_scores + at + j);
    }
  }
}

template <class T>
void load_all_keys(const DeltaHead<T>& head, std::int64_t first, const ChunkFactors<T>& f) {
  load_keys(head, head.q, first, f, f.q, f.q_factor);
  load_keys(head, head.k, first, f, f.k, f.k_factor);
  if (f.e) load_erase(head, first, f);
}
// The panels of what was written and read with.
template <class T>
void make_panels(const ChunkFactors<T>& f) {
  if (f.write_panel) token_panel(f.write, f.tokens, f.Kp, f.write_panel);
  if (f.erase_panel && f.erase_panel != f.write_panel) {
    token_panel(f.read + f.tokens * f.Kp, f.tokens, f.Kp, f.erase_panel);
  }
}

template <class T>
void chunk_keys_t(const DeltaHead<T>& head, std::int64_t first, const ChunkFactors<T>& f, Arena& scratch) {
  if (f.channel_decays) return;
  ArenaScope scope(scratch);
  load_all_keys(head, first, f);
  make_panels(f);
  plain_scores(f, scratch);
}
void chunk_keys_f32(const DeltaHead<float>& head, std::int64_t first, const ChunkFactors<float>& out, Arena& scratch) {
  chunk_keys_t(head, first, out, scratch);
}
void chunk_keys_f64(const DeltaHead<double>& head, std::int64_t first, const ChunkFactors<double>& out,
                    Arena& scratch) {
  chunk_keys_t(head, first, out, scratch);
}

template <class T>
void chunk_factors_t(const DeltaHead<T>& head, std::int64_t first, const ChunkFactors<T>& f, Arena& scratch) {
  ArenaScope scope(scratch);
  load_decays(head, first, f);
  if (!f.channel_decays) {
    decay_rows(head, first, f);
    return head_scores(head, first, f, scratch);
  }
  load_all_keys(head, first, f);
  decay_keys(head, f);
  make_panels(f);
  T* keys = scratch.allocate<T>(16 * f.Kp);
  for (std::int64_t row = 0; row < f.tokens; row += 16) {
    const std::int64_t n = std::min<std::int64_t>(16, f.tokens - row);
    if (f.erases) {
      diagonal_scores<T, true>(head, f, row, n, keys);
    } else {
      diagonal_scores<T, false>(head, f, row, n, keys);
    }
  }
  if (f.tokens > 16) distant_scores(head, f, scratch);
}
void chunk_factors_f32(const DeltaHead<float>& head, std::int64_t first, const ChunkFactors<float>& out,
                       Arena& scratch) {
  chunk_factors_t(head, first, out, scratch);
}
void chunk_factors_f64(const DeltaHead<double>& head, std::int64_t first, const ChunkFactors<double>& out,
                       Arena& scratch) {
  chunk_factors_t(head, first, out, scratch);
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(chunk_keys_f32);
HWY_EXPORT(chunk_keys_f64);
HWY_EXPORT(chunk_factors_f32);
HWY_EXPORT(chunk_factors_f64);

void chunk_keys(const DeltaHead<float>& head, std::int64_t first, const ChunkFactors<float>& out, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(chunk_keys_f32)(head, first, out, scratch);
}
void chunk_keys(const DeltaHead<double>& head, std::int64_t first, const ChunkFactors<double>& out, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(chunk_keys_f64)(head, first, out, scratch);
}
void chunk_factors(const DeltaHead<float>& head, std::int64_t first, const ChunkFactors<float>& out, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(chunk_factors_f32)(head, first, out, scratch);
}
void chunk_factors(const DeltaHead<double>& head, std::int64_t first, const ChunkFactors<double>& out, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(chunk_factors_f64)(head, first, out, scratch);
}

}  // namespace stepwell::ops
#endif
