// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gated_delta/backward_tokens_simd.cc"
#include "hwy/foreach_target.h"

#include "ops/gated_delta/chunk_columns-inl.h"
#include "ops/gated_delta/prepare-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

// Channels that are taken together: NV vectors, at most two.
template <class T>
inline constexpr std::int64_t kMostChannels = 2 * kWidth<T>;
template <class T, int NV>
using ChannelStrip = Vec<T>[NV];

// The gradients of the scores of a chunk: read_ij = dL/d(q_i·k_j), erase_ij = dL/d(e_i·k_j), both [16, 16], times
// exp(G_i − G_j) where a head has one decay; and what the pairs (i, j) give to the log decays between them.
template <class T>
struct ScoreGradients {
  T read[16 * 16], erase[16 * 16];
  T decay[16];
  T b[16];  // erase gates, where factors have no e
};

template <class T>
void score_gradients(const DeltaHead<T>& head, std::int64_t first, const ChunkFactors<T>& f, const ColumnSums<T>& sums,
                     ScoreGradients<T>& out) {
  const std::int64_t n = f.tokens;
  for (std::int64_t t = 0; t < n && f.erases && !f.e; ++t) out.b[t] = *head.b.row(first + t);
  T factor[16], crossing[16] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      if (f.channel_decays) {
        factor[j] = 1;
      } else {
        factor[j] = j == i ? T(1) : factor[j] * f.alpha[i];
      }
      out.read[i * 16 + j] = head.scale * sums.scores[i * 16 + j] * factor[j];
      if (f.erases) out.erase[i * 16 + j] = -sums.scores[(n + i) * 16 + j] * factor[j];
    }
  }
  if (f.channel_decays) return;
  // crossing[j]: what pairs of j with tokens from i on give.
  for (std::int64_t i = n - 1; i >= 0; --i) {
    out.decay[i] = 0;
    for (std::int64_t j = 0; j < i; ++j) {
      crossing[j] += sums.scores[i * 16 + j] * f.scores[i * f.score_row + j];
      if (f.erases) crossing[j] += sums.scores[(n + i) * 16 + j] * f.erase_scores[i * f.score_row + j];
      out.decay[i] += crossing[j];
    }
  }
}

// b⊙k of token t.
template <class T>
HWY_INLINE Vec<T> erase_vector(const ChunkFactors<T>& f, const ScoreGradients<T>& scores, std::int64_t t,
                               std::int64_t channel) {
  const std::int64_t at = t * f.Kp + channel;
  return f.e ? load(f.e + at) : hn::Mul(set(scores.b[t]), load(f.k + at));
}

// What a strip of channels needs of the pairs of tokens, [tokens, strip].
template <class T>
struct StripSums {
  T q[16 * kMostChannels<T>], e[16 * kMostChannels<T>];  // Σ_{j<i} of the scores' gradients times decayed keys
  T k[16 * kMostChannels<T>];                            // Σ_{i>j} of them times decayed queries and erase vectors
  T g[16 * kMostChannels<T>];                            // to the log decays
  T keys[16 * 16 * kMostChannels<T>];                    // [i, j] k_j decayed up to token i
  T through[16 * kMostChannels<T>];                      // what states pass to the log decays
};

template <class T, int NV>
HWY_INLINE void load_strip(const T* from, ChannelStrip<T, NV>& to) {
#pragma GCC unroll 2
  for (int v = 0; v < NV; ++v) to[v] = load(from + v * kWidth<T>);
}
template <class T, int NV>
HWY_INLINE void store_strip(const ChannelStrip<T, NV>& from, T* to) {
#pragma GCC unroll 2
  for (int v = 0; v < NV; ++v) store<T>(from[v], to + v * kWidth<T>);
}

// Sums over the tokens before each: decayed keys times the gradients of scores.
template <class T, int NV, bool kChannels, bool kErase>
HWY_INLINE void sums_before(const ChunkFactors<T>& f, std::int64_t d, const ScoreGradients<T>& scores,
                            StripSums<T>& out) {
  constexpr std::int64_t C = NV * kWidth<T>;
  for (std::int64_t i = 0; i < f.tokens; ++i) {
    ChannelStrip<T, NV> q, e, alpha, key;
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) q[v] = e[v] = alpha[v] = zero<T>();
    if constexpr (kChannels) load_strip<T, NV>(f.alpha + i * f.Kp + d, alpha);
    for (std::int64_t j = 0; j < i; ++j) {
      const Vec<T> read = set(scores.read[i * 16 + j]), erase = kErase ? set(scores.erase[i * 16 + j]) : zero<T>();
      if constexpr (kChannels) {
        load_strip<T, NV>(out.keys + ((i - 1) * 16 + j) * C, key);
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) key[v] = hn::Mul(alpha[v], key[v]);
        store_strip<T, NV>(key, out.keys + (i * 16 + j) * C);
      } else {
        load_strip<T, NV>(f.k + j * f.Kp + d, key);
      }
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v) {
        q[v] = fma(read, key[v], q[v]);
        if constexpr (kErase) e[v] = fma(erase, key[v], e[v]);
      }
    }
    if constexpr (kChannels) {
      load_strip<T, NV>(f.k + i * f.Kp + d, key);
      store_strip<T, NV>(key, out.keys + (i * 16 + i) * C);
    }
    store_strip<T, NV>(q, out.q + i * C);
    store_strip<T, NV>(e, out.e + i * C);
  }
}

// Sums over the tokens after each; and, decays per channel, what pairs give to the decays between them: the keys
// decayed to just before a token times what arrives from it and later ones. Nothing is subtracted, so that a gradient
// is accurate however strong the decay.
template <class T, int NV, bool kChannels, bool kErase>
HWY_INLINE void sums_after(const ChunkFactors<T>& f, std::int64_t d, const ScoreGradients<T>& scores,
                           StripSums<T>& out) {
  constexpr std::int64_t C = NV * kWidth<T>;
  for (std::int64_t j = 0; j < f.tokens; ++j) {
    for (std::int64_t l = 0; l < C; l += kWidth<T>) store<T>(zero<T>(), out.k + j * C + l);
  }
  for (std::int64_t i = f.tokens - 1; i >= 0; --i) {
    ChannelStrip<T, NV> q, e, alpha, g;
    load_strip<T, NV>(f.q + i * f.Kp + d, q);
    if constexpr (kErase) {
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v) e[v] = erase_vector(f, scores, i, d + v * kWidth<T>);
    }
    if constexpr (kChannels) load_strip<T, NV>(f.alpha + i * f.Kp + d, alpha);
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) g[v] = zero<T>();
    for (std::int64_t j = 0; j < i; ++j) {
      const Vec<T> read = set(scores.read[i * 16 + j]), erase = kErase ? set(scores.erase[i * 16 + j]) : zero<T>();
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v) {
        T* at = out.k + j * C + v * kWidth<T>;
        Vec<T> sum = fma(read, q[v], load(at));
        if constexpr (kErase) sum = fma(erase, e[v], sum);
        if constexpr (kChannels) {
          sum = hn::Mul(sum, alpha[v]);
          g[v] = fma(load(out.keys + ((i - 1) * 16 + j) * C + v * kWidth<T>), sum, g[v]);
        }
        store<T>(sum, at);
      }
    }
    if constexpr (kChannels) store_strip<T, NV>(g, out.g + i * C);
  }
}

// Lanes of sums over channels, [16, 16]: what a token's reading and its writing give to the log decays, where a head
// has one; and the state's.
template <class T>
struct DecayLanes {
  T read[16 * 16], write[16 * 16], state[16];
};

// Adds to a strip what its tokens give through the states before and after the chunk. Leaves in `through` what each
// gives, by writing, to the decays after it.
template <class T, int NV, bool kChannels, bool kErase>
HWY_INLINE void add_states(T output_scale, const ChunkFactors<T>& f, std::int64_t d, const ScoreGradients<T>& scores,
                           const ColumnSums<T>& sums, StripSums<T>& strip, DecayLanes<T>& lanes) {
  constexpr std::int64_t C = NV * kWidth<T>;
  const std::int64_t n = f.tokens, Kp = f.Kp;
  const Vec<T> scale = set(output_scale);
  for (std::int64_t l = 0; l < C; l += kWidth<T>) {
    const std::int64_t channel = d + l;
    const auto alpha = [&](std::int64_t t)
                           HWY_ATTR { return kChannels ? load(f.alpha + t * Kp + channel) : set(f.alpha[t]); };
    // Towards the state before the chunk.
    Vec<T> decay = set(T(1));
    for (std::int64_t t = 0; t < n; ++t) {
      const std::int64_t at = t * Kp + channel;
      T* own = strip.q + t * C + l;
      decay = hn::Mul(decay, alpha(t));
      const Vec<T> q = load(f.q + at), read = hn::Mul(hn::Mul(scale, decay), load(sums.read + at));
      store<T>(hn::Add(load(own), read), own);
      Vec<T> through = hn::Mul(q, read);
      if constexpr (kErase) {
        T* erased = strip.e + t * C + l;
        const Vec<T> erase = hn::Neg(hn::Mul(decay, load(sums.read + n * Kp + at)));
        store<T>(hn::Add(load(erased), erase), erased);
        through = fma(erase_vector(f, scores, t, channel), erase, through);
      }
      if constexpr (kChannels) {
        store<T>(through, strip.through + t * C + l);
      } else {
        T* lane = lanes.read + t * 16 + channel % 16;
        store<T>(hn::Add(load(lane), through), lane);
      }
    }
    const Vec<T> of_state = hn::Mul(decay, load(sums.overlap + channel));
    if constexpr (!kChannels) {
      T* lane = lanes.state + channel % 16;
      store<T>(hn::Add(load(lane), of_state), lane);
    }
    // Towards the state after it; the decays see what is read from them on and written before them.
    Vec<T> to_end = set(T(1)), later = of_state;
    for (std::int64_t t = n - 1; t >= 0; --t) {
      const std::int64_t at = t * Kp + channel;
      T* own = strip.k + t * C + l;
      const Vec<T> write = hn::Mul(to_end, load(sums.write + at)), k = load(f.k + at);
      store<T>(hn::Add(load(own), write), own);
      to_end = hn::Mul(to_end, alpha(t));
      if constexpr (kChannels) {
        later = hn::Add(later, load(strip.through + t * C + l));
        T* g = strip.g + t * C + l;
        store<T>(hn::Add(load(g), later), g);
        store<T>(hn::Mul(k, write), strip.through + t * C + l);
      } else {
        T* lane = lanes.write + t * 16 + channel % 16;
        store<T>(fma(k, write, load(lane)), lane);
      }
    }
  }
}

// Writes or adds a strip's gradients.
template <class T, int NV, bool kChannels, bool kErase>
HWY_INLINE void give_strip(const DeltaHead<T>& head, std::int64_t first, const ChunkFactors<T>& f, std::int64_t d,
                           const ScoreGradients<T>& scores, const StripSums<T>& strip, const ChunkGradients<T>& out) {
  constexpr std::int64_t C = NV * kWidth<T>;
  const auto so_far = [&](const T* at) HWY_ATTR { return out.adds ? load(at) : zero<T>(); };
  for (std::int64_t l = 0; l < C; l += kWidth<T>) {
    const std::int64_t channel = d + l;
    Vec<T> earlier = zero<T>();
    for (std::int64_t t = 0; t < f.tokens; ++t) {
      const std::int64_t at = t * f.Kp + channel;
      const Vec<T> q = load(f.q + at), k = load(f.k + at), own = set(scores.read[t * 16 + t]);
      if (out.q) store<T>(hn::Add(so_far(out.q + at), fma(own, k, load(strip.q + t * C + l))), out.q + at);
      if constexpr (kErase) {
        const Vec<T> e = load(strip.e + t * C + l);
        if (out.b) store<T>(fma(k, e, so_far(out.b + at)), out.b + at);
      }
      if (out.k) {
        Vec<T> sum = fma(own, q, load(strip.k + t * C + l));
        if constexpr (kErase) {
          const T* row = head.b.row(first + t);
          const Vec<T> b = head.b.channels ? load_part(row + channel, head.K - channel) : set(*row);
          sum = fma(b, load(strip.e + t * C + l), sum);
        }
        store<T>(hn::Add(so_far(out.k + at), sum), out.k + at);
      }
      if constexpr (kChannels) {
        if (out.g) store<T>(hn::Add(so_far(out.g + at), hn::Add(load(strip.g + t * C + l), earlier)), out.g + at);
        earlier = hn::Add(earlier, load(strip.through + t * C + l));
      }
    }
  }
}

template <class T, bool kChannels, bool kErase>
void chunk_gradients_of(const DeltaHead<T>& head, std::int64_t first, const ChunkFactors<T>& f,
                        const ColumnSums<T>& sums, const ChunkGradients<T>& out, Arena& scratch) {
  auto& scores = *scratch.allocate<ScoreGradients<T>>(1);
  auto& strip = *scratch.allocate<StripSums<T>>(1);
  auto& lanes = *scratch.allocate<DecayLanes<T>>(1);
  score_gradients(head, first, f, sums, scores);
  if (!kChannels) lanes = DecayLanes<T>{};
  const auto run = [&]<int NV>(std::int64_t d) {
    sums_before<T, NV, kChannels, kErase>(f, d, scores, strip);
    sums_after<T, NV, kChannels, kErase>(f, d, scores, strip);
    add_states<T, NV, kChannels, kErase>(head.scale, f, d, scores, sums, strip, lanes);
    give_strip<T, NV, kChannels, kErase>(head, first, f, d, scores, strip, out);
  };
  constexpr std::int64_t kPair = 2 * kWidth<T>;
  std::int64_t d = 0;
  for (; d + kPair <= f.Kp; d += kPair) run.template operator()<2>(d);
  if constexpr (kPair > 16) {
    if (d < f.Kp) run.template operator()<1>(d);
  }
  if (kChannels || !out.g) return;
  T later = sum16(lanes.state, 16), written[16];
  for (std::int64_t t = 0; t < f.tokens; ++t) written[t] = sum16(lanes.write + t * 16, 16);
  for (std::int64_t t = f.tokens - 1; t >= 0; --t) {
    later += sum16(lanes.read + t * 16, 16);
    out.g[t] = (out.adds ? out.g[t] : T(0)) + (scores.decay[t] + later);
  }
  T earlier = 0;
  for (std::int64_t t = 0; t < f.tokens; ++t) {
    out.g[t] += earlier;
    earlier += written[t];
  }
}

template <class T>
void chunk_gradients_t(const DeltaHead<T>& head, std::int64_t first, const ChunkFactors<T>& f,
                       const ColumnSums<T>& sums, const ChunkGradients<T>& out, Arena& scratch) {
  ArenaScope scope(scratch);
  if (f.channel_decays) {
    if (f.erases) return chunk_gradients_of<T, true, true>(head, first, f, sums, out, scratch);
    return chunk_gradients_of<T, true, false>(head, first, f, sums, out, scratch);
  }
  if (f.erases) return chunk_gradients_of<T, false, true>(head, first, f, sums, out, scratch);
  chunk_gradients_of<T, false, false>(head, first, f, sums, out, scratch);
}
void chunk_gradients_f32(const DeltaHead<float>& head, std::int64_t first, const ChunkFactors<float>& factors,
                         const ColumnSums<float>& sums, const ChunkGradients<float>& out, Arena& scratch) {
  chunk_gradients_t(head, first, factors, sums, out, scratch);
}
void chunk_gradients_f64(const DeltaHead<double>& head, std::int64_t first, const ChunkFactors<double>& factors,
                         const ColumnSums<double>& sums, const ChunkGradients<double>& out, Arena& scratch) {
  chunk_gradients_t(head, first, factors, sums, out, scratch);
}

template <class T>
void add_sums_t(const T* from, std::int64_t n, T* to) {
  for_vectors<T>(n, [&](std::int64_t i, std::int64_t lanes) HWY_ATTR {
    store_part<T>(hn::Add(load_part(to + i, lanes), load_part(from + i, lanes)), to + i, lanes);
  });
}
void add_sums_f32(const float* from, std::int64_t n, float* to) { add_sums_t(from, n, to); }
void add_sums_f64(const double* from, std::int64_t n, double* to) { add_sums_t(from, n, to); }

// With y = x·ρ: dx = ρ·(dy − y·(y·dy)).
template <class T>
void row_gradients_t(const RowGradients<T>& work) {
  for (std::int64_t t = 0; t < work.tokens; ++t) {
    const T *y = work.y + t * work.Kp, *gradient = work.gradient + t * work.Kp;
    T* out = work.out.row(t);
    const Vec<T> along = set(work.factor ? dot16(y, gradient, work.K) : T(0));
    const Vec<T> factor = set(work.factor ? work.factor[t] : T(1));
    for_vectors<T>(work.K, [&](std::int64_t d, std::int64_t lanes) HWY_ATTR {
      Vec<T> x = load_part(gradient + d, lanes);
      if (work.factor) x = hn::Mul(factor, fnma(load_part(y + d, lanes), along, x));
      store_part<T>(x, out + d, lanes);
    });
  }
}
void row_gradients_f32(const RowGradients<float>& work) { row_gradients_t(work); }
void row_gradients_f64(const RowGradients<double>& work) { row_gradients_t(work); }

template <class T>
void gate_gradients_t(const GateGradients<T>& work) {
  if (!work.out) return;
  for (std::int64_t t = 0; t < work.tokens; ++t) {
    const T* gradient = work.gradient + (work.gradient_channels ? t * work.Kp : t);
    T* out = work.out.row(t);
    if (!work.gradient_channels) {
      *out = *gradient;
    } else if (!work.channels) {
      *out = sum16(gradient, work.K);
    } else {
      for_vectors<T>(work.K, [&](std::int64_t d, std::int64_t lanes)
                                 HWY_ATTR { store_part<T>(load_part(gradient + d, lanes), out + d, lanes); });
    }
  }
}
void gate_gradients_f32(const GateGradients<float>& work) { gate_gradients_t(work); }
void gate_gradients_f64(const GateGradients<double>& work) { gate_gradients_t(work); }

// Gradients of g + dt_bias and of A_log.
template <class V>
struct DecayGradient {
  V raw, slope;
};
template <class T>
HWY_INLINE DecayGradient<Vec<T>> decay_gradient(const DeltaHead<T>& head, Vec<T> raw, Vec<T> slope, Vec<T> gradient) {
  const auto none = hn::Eq(gradient, zero<T>());
  if (head.gate == DecayGate::Softplus) {
    const Vec<T> rate = hn::Neg(slope);
    // A decay of −inf has no gradient.
    return {hn::IfThenElse(none, zero<T>(), hn::Mul(hn::Mul(rate, softplus_derivative(raw)), gradient)),
            hn::IfThenElse(none, zero<T>(), hn::Mul(hn::Mul(rate, softplus(raw)), gradient))};
  }
  const Vec<T> both = sigmoid_derivative(hn::Mul(slope, raw));
  const auto flat = hn::Or(none, hn::Eq(both, zero<T>()));
  const Vec<T> steep = hn::Mul(hn::Mul(set(head.lower_bound), both), gradient);
  const Vec<T> through = hn::IfThenElse(flat, zero<T>(), hn::Mul(steep, slope));
  return {through, hn::IfThenElse(flat, zero<T>(), hn::Mul(through, raw))};
}

template <class T>
void decay_gradients_t(const DecayGradients<T>& work) {
  const DeltaHead<T>& head = work.head;
  if (head.gate == DecayGate::Given) return;
  const Vec<T> slope = exp(set(head.A_log));
  if (!head.g.channels) {
    HWY_ALIGN T raw[16] = {}, of_slope[16];
    for (std::int64_t t = work.tokens - 1; t >= 0; --t) raw[t] = *head.g.row(work.first + t);
    const Vec<T> bias = set(head.dt_bias ? *head.dt_bias : T(0));
    for_vectors<T>(work.tokens, [&](std::int64_t t, std::int64_t lanes) HWY_ATTR {
      const auto [g, s] =
          decay_gradient(head, hn::Add(load_part(raw + t, lanes), bias), slope, load_part(work.gradient + t, lanes));
      store_part<T>(g, work.gradient + t, lanes);
      store_part<T>(s, of_slope + t, lanes);
    });
    for (std::int64_t t = work.tokens - 1; t >= 0; --t) {
      work.dt_bias[0] += work.gradient[t];
      work.A_log[0] += of_slope[t];
    }
    return;
  }
  for (std::int64_t t = work.tokens - 1; t >= 0; --t) {
    const T* row = head.g.row(work.first + t);
    T* gradient = work.gradient + t * work.Kp;
    for_vectors<T>(head.K, [&](std::int64_t d, std::int64_t lanes) HWY_ATTR {
      const Vec<T> bias = head.dt_bias ? load_part(head.dt_bias + d, lanes) : zero<T>();
      const auto [g, s] =
          decay_gradient(head, hn::Add(load_part(row + d, lanes), bias), slope, load_part(gradient + d, lanes));
      store_part<T>(g, gradient + d, lanes);
      store_part<T>(hn::Add(load_part(work.dt_bias + d, lanes), g), work.dt_bias + d, lanes);
      store_part<T>(hn::Add(load_part(work.A_log + d, lanes), s), work.A_log + d, lanes);
    });
  }
}
void decay_gradients_f32(const DecayGradients<float>& work) { decay_gradients_t(work); }
void decay_gradients_f64(const DecayGradients<double>& work) { decay_gradients_t(work); }

float sum_lanes_f32(const float* x, std::int64_t n) { return sum16(x, n); }
double sum_lanes_f64(const double* x, std::int64_t n) { return sum16(x, n); }

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(chunk_gradients_f32);
HWY_EXPORT(chunk_gradients_f64);
HWY_EXPORT(add_sums_f32);
HWY_EXPORT(add_sums_f64);
HWY_EXPORT(row_gradients_f32);
HWY_EXPORT(row_gradients_f64);
HWY_EXPORT(gate_gradients_f32);
HWY_EXPORT(gate_gradients_f64);
HWY_EXPORT(decay_gradients_f32);
HWY_EXPORT(decay_gradients_f64);
HWY_EXPORT(sum_lanes_f32);
HWY_EXPORT(sum_lanes_f64);

void chunk_gradients(const DeltaHead<float>& head, std::int64_t first, const ChunkFactors<float>& factors,
                     const ColumnSums<float>& sums, const ChunkGradients<float>& out, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(chunk_gradients_f32)(head, first, factors, sums, out, scratch);
}
void chunk_gradients(const DeltaHead<double>& head, std::int64_t first, const ChunkFactors<double>& factors,
                     const ColumnSums<double>& sums, const ChunkGradients<double>& out, Arena& scratch) {
  HWY_DYNAMIC_DISPATCH(chunk_gradients_f64)(head, first, factors, sums, out, scratch);
}
void add_sums(const float* from, std::int64_t n, float* to) { HWY_DYNAMIC_DISPATCH(add_sums_f32)(from, n, to); }
void add_sums(const double* from, std::int64_t n, double* to) { HWY_DYNAMIC_DISPATCH(add_sums_f64)(from, n, to); }
void row_gradients(const RowGradients<float>& work) { HWY_DYNAMIC_DISPATCH(row_gradients_f32)(work); }
void row_gradients(const RowGradients<double>& work) { HWY_DYNAMIC_DISPATCH(row_gradients_f64)(work); }
void gate_gradients(const GateGradients<float>& work) { HWY_DYNAMIC_DISPATCH(gate_gradients_f32)(work); }
void gate_gradients(const GateGradients<double>& work) { HWY_DYNAMIC_DISPATCH(gate_gradients_f64)(work); }
void decay_gradients(const DecayGradients<float>& work) { HWY_DYNAMIC_DISPATCH(decay_gradients_f32)(work); }
void decay_gradients(const DecayGradients<double>& work) { HWY_DYNAMIC_DISPATCH(decay_gradients_f64)(work); }
float sum_lanes(const float* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_lanes_f32)(x, n); }
double sum_lanes(const double* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_lanes_f64)(x, n); }

}  // namespace stepwell::ops
#endif
