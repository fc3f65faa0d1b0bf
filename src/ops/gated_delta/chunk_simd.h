// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "stepwell/core/arena.h"

#include "ops/gated_delta/delta_head.h"

// The chunked form, piece by piece: factors and scores of a chunk, its columns forwards and backwards, its gradients.
//
// In a chunk of n tokens with state S before it, decays α_i and G_i = Σ_{m≤i} log α_m,
//   T_ij = Σ_d e_id k_jd exp(G_id − G_jd), j < i      A_ij = scale·Σ_d q_id k_jd exp(G_id − G_jd), j ≤ i
//   (I + T) R = Z − Ē S      O = Q S + A R      S' = exp(G_n)⊙S + K̃ᵀR
// with Ē_i = exp(G_i)⊙e_i, Q_i = scale·exp(G_i)⊙q_i, K̃_j = exp(G_n − G_j)⊙k_j. Every decay is a product of α in [0, 1],
// so none overflows and α = 0 is exact.
namespace stepwell::ops {

// Chunks end at multiples of this many tokens of a sequence too: a span, whose states before are the checkpoints.
inline constexpr std::int64_t kSpan = kCheckpointTokens;

inline std::int64_t round_up_16(std::int64_t n) { return (n + 15) / 16 * 16; }

// Factors and scores of one chunk of n tokens. Rows are Kp = K rounded up to 16 long, zeros beyond K; those of scores
// n rounded up to 16. Where a head has one decay per token, keys are kept as they are and decays are factors of whole
// rows: what comes from keys alone is then shared by all value heads that read them.
template <class T>
struct ChunkFactors {
  std::int64_t tokens = 0, Kp = 0, score_row = 0;
  bool erases = false, channel_decays = false;
  T* q = nullptr;                              // [n, Kp] after l2norm
  T* k = nullptr;                              // [n, Kp]
  T* e = nullptr;                              // [n, Kp] b⊙k; null where decays and b are one per token
  T* alpha = nullptr;                          // [n, Kp], or [n] where a head has one decay
  T *q_factor = nullptr, *k_factor = nullptr;  // [n] of l2norm
  T* read = nullptr;                           // [2n, Kp] Q, then −Ē; or the rows of q, then e or k
  T* write = nullptr;                          // [n, Kp] K̃, or k
  T* read_scale = nullptr;                     // [2n] what rows of read are to be multiplied by; null: nothing
  T* write_scale = nullptr;                    // [n] likewise
  T* decay = nullptr;                          // [Kp] exp(G_n)
  T *plain_scores = nullptr, *plain_erase_scores = nullptr;  // [n, score_row] of undecayed keys
  T* scores = nullptr;                                       // [n, score_row] A
  T* erase_scores = nullptr;                                 // [n, score_row] −T; null where nothing is erased
  T *write_panel = nullptr, *erase_panel = nullptr;  // [Kp, 16 tokens] of write, read[n…]; backwards only, n ≤ 16
};

// Where the factors of a span lie: what comes from keys in one buffer, which is empty if decays are per channel, the
// rest in another.
struct FactorLayout {
  std::int64_t Kp, chunk;
  bool erases, channel_decays, own_erase, panels;  // own_erase: e is kept

  std::int64_t chunks(std::int64_t tokens) const { return (tokens + chunk - 1) / chunk; }
  std::int64_t key_size() const { return channel_decays ? 0 : chunks(kSpan) * key_chunk(); }
  std::int64_t head_size() const {
    const std::int64_t row = round_up_16(chunk), of_head = Kp + kinds() * chunk * row + 4 * row;
    return chunks(kSpan) * (of_head + (channel_decays ? key_chunk() + (2 + kinds()) * chunk * Kp : 0));
  }
  // Chunk c of a span of `tokens` tokens.
  template <class T>
  ChunkFactors<T> at(T* keys, T* heads, std::int64_t c, std::int64_t tokens) const {
    keys += c * (key_size() / chunks(kSpan));
    heads += c * (head_size() / chunks(kSpan));
    const auto take = [](T*& data, std::int64_t size) { return std::exchange(data, data + size); };
    ChunkFactors<T> f;
    f.tokens = std::min(chunk, tokens - c * chunk);
    f.Kp = Kp;
    f.score_row = round_up_16(f.tokens);
    f.erases = erases;
    f.channel_decays = channel_decays;
    const std::int64_t n = f.tokens, rows = n * Kp, scores = n * f.score_row;
    f.decay = take(heads, Kp);
    f.scores = take(heads, scores);
    if (erases) f.erase_scores = take(heads, scores);
    if (channel_decays) {
      f.alpha = take(heads, rows);
      f.read = take(heads, kinds() * rows);
      f.write = take(heads, rows);
      keys = heads;
    } else {
      f.alpha = take(heads, f.score_row);
      f.read_scale = take(heads, 2 * f.score_row);
      f.write_scale = take(heads, f.score_row);
    }
    f.q = take(keys, rows);
    if (own_erase) f.e = take(keys, rows);
    f.k = take(keys, rows);
    f.q_factor = take(keys, f.score_row);
    f.k_factor = take(keys, f.score_row);
    if (panels) f.write_panel = take(keys, 16 * Kp);
    if (panels && erases) f.erase_panel = own_erase ? take(keys, 16 * Kp) : f.write_panel;
    if (channel_decays) return f;
    f.read = f.q;
    f.write = f.k;
    f.plain_scores = take(keys, scores);
    if (erases) f.plain_erase_scores = take(keys, scores);
    return f;
  }

 private:
  std::int64_t kinds() const { return erases ? 2 : 1; }
  std::int64_t key_chunk() const {
    const std::int64_t row = round_up_16(chunk), vectors = own_erase ? 3 : 2;
    return vectors * chunk * Kp + 2 * row + (channel_decays ? 0 : kinds() * chunk * row) +
           (panels ? 16 * Kp * (own_erase ? 2 : 1) : 0);
  }
};

// Fill the factors of tokens first … first+n−1 of a head: what comes from keys alone (nothing if decays are per
// channel), then the rest.
//
// Order   sums over channels of pairs inside 16 tokens are the 16-lane tree (simd/reduce-inl.h), others one chain.
// Cost    3 slots per pair of tokens and 8 channels inside 16 tokens, 2 beyond, and one exponential per decay.
void chunk_keys(const DeltaHead<float>& head, std::int64_t first, const ChunkFactors<float>& out, Arena& scratch);
void chunk_keys(const DeltaHead<double>& head, std::int64_t first, const ChunkFactors<double>& out, Arena& scratch);
void chunk_factors(const DeltaHead<float>& head, std::int64_t first, const ChunkFactors<float>& out, Arena& scratch);
void chunk_factors(const DeltaHead<double>& head, std::int64_t first, const ChunkFactors<double>& out, Arena& scratch);

// The chunks of a span of one value head.
template <class T>
struct SpanColumns {
  DeltaHead<T> head;  // from the span's first token on
  std::int64_t tokens, units;
  FactorLayout layout;
  T *keys, *factors;

  ChunkFactors<T> chunk(std::int64_t c) const { return layout.at(keys, factors, c, tokens); }
};

// Runs a span: state [units, K, 16] in/out, o [tokens, V].
//
// Order   lanes over columns; every sum one chain in increasing channel, then token.
template <class T>
struct SpanForward : SpanColumns<T> {
  T* state;
  HeadRows<T> o;                // null: not wanted
  HeadRows<const T> o_factors;  // of the rows of o, a number each; null: none
};
void span_forward(const SpanForward<float>& work, Arena& scratch);
void span_forward(const SpanForward<double>& work, Arena& scratch);

// What a value head gives towards the gradients of a chunk's keys: sums over its columns.
template <class T>
struct ColumnSums {
  T* read;     // [2n, Kp] S dO_i, then S X_i (with erase)
  T* write;    // [n, Kp] Λ R_j
  T* overlap;  // [Kp] rows of S⊙Λ
  T* scores;   // [2n, 16] dO Rᵀ, then X Rᵀ (with erase)
};
struct SumsLayout {
  std::int64_t Kp, chunk;
  bool erases;

  // Numbers of a chunk of n tokens.
  std::int64_t chunk_size(std::int64_t n) const { return (erases ? 3 : 2) * n * Kp + Kp + (erases ? 2 : 1) * n * 16; }
  std::int64_t size() const { return kSpan / chunk * chunk_size(chunk); }
  // The sums of chunk c, which has n tokens.
  template <class T>
  T* data(T* sums, std::int64_t c) const {
    return sums + c * chunk_size(chunk);
  }
  template <class T>
  ColumnSums<T> at(T* sums, std::int64_t c, std::int64_t n) const {
    T* first = data(sums, c);
    const std::int64_t kinds = erases ? 2 : 1;
    return {first, first + kinds * n * Kp, first + (kinds + 1) * n * Kp, first + ((kinds + 1) * n + 1) * Kp};
  }
};

// The chunk of the backward pass; divides kSpan.
inline constexpr std::int64_t kBackwardChunk = 16;

// The adjoint of a span over the columns of one value head; the chunks are kBackwardChunk tokens.
template <class T>
struct SpanBackward : SpanColumns<T> {
  const T* state;              // [units, K, 16] before the span
  T* lam;                      // [16·units, Kp] in/out: gradient of the state after the span → before it, transposed
  HeadRows<const T> grad_o;    // null: 0
  HeadRows<T> grad_v, grad_w;  // null: not wanted
  T* sums;                     // [SumsLayout::size()] written
};
void span_backward(const SpanBackward<float>& work, Arena& scratch);
void span_backward(const SpanBackward<double>& work, Arena& scratch);

// Between a packed state [units, K, 16] and its transpose [16·units, Kp], zeros beyond K there.
void transpose_state(const float* packed, std::int64_t units, std::int64_t K, float* transposed);
void transpose_state(const double* packed, std::int64_t units, std::int64_t K, double* transposed);
void restore_state(const float* transposed, std::int64_t units, std::int64_t K, float* packed);
void restore_state(const double* transposed, std::int64_t units, std::int64_t K, double* packed);

// Gradients of the tokens of a chunk, written or added to; rows of Kp. g [n] where a head has one decay. Null: not
// wanted.
template <class T>
struct ChunkGradients {
  T *q, *k, *b, *g;
  bool adds;
};
// From the sums over columns to the gradients of q̂, k̂, b and log decay.
void chunk_gradients(const DeltaHead<float>& head, std::int64_t first, const ChunkFactors<float>& factors,
                     const ColumnSums<float>& sums, const ChunkGradients<float>& out, Arena& scratch);
void chunk_gradients(const DeltaHead<double>& head, std::int64_t first, const ChunkFactors<double>& factors,
                     const ColumnSums<double>& sums, const ChunkGradients<double>& out, Arena& scratch);

// to[i] += from[i].
void add_sums(const float* from, std::int64_t n, float* to);
void add_sums(const double* from, std::int64_t n, double* to);

// Writes the gradients of rows of q or k given those of their normalised values y (factor null: as they are).
template <class T>
struct RowGradients {
  std::int64_t tokens, K, Kp;
  const T *y, *factor, *gradient;
  HeadRows<T> out;
};
void row_gradients(const RowGradients<float>& work);
void row_gradients(const RowGradients<double>& work);

// Writes the gradients of a gate's rows, given those per channel: [n, Kp], or [n] where `gradient_channels` is false.
template <class T>
struct GateGradients {
  std::int64_t tokens, K, Kp;
  const T* gradient;
  bool gradient_channels;
  HeadRows<T> out;  // null: not wanted
  bool channels;
};
void gate_gradients(const GateGradients<float>& work);
void gate_gradients(const GateGradients<double>& work);

// The same through the decay gate of `head`, in place: from gradients of log decays [n, Kp], or [n] per head, to those
// of g. Adds what the tokens give to dt_bias [Kp] and A_log [Kp] (sums over channels are left to the caller).
template <class T>
struct DecayGradients {
  DeltaHead<T> head;
  std::int64_t first, tokens, Kp;
  T* gradient;
  T *dt_bias, *A_log;
};
void decay_gradients(const DecayGradients<float>& work);
void decay_gradients(const DecayGradients<double>& work);

// Σ x as the 16-lane tree.
float sum_lanes(const float* x, std::int64_t n);
double sum_lanes(const double* x, std::int64_t n);

}  // namespace stepwell::ops
