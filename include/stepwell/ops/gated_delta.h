// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/core/context.h"
#include "stepwell/core/segments.h"
#include "stepwell/core/view.h"

namespace stepwell::ops {

// How the log decay comes from the input g. A_log counts as at most 80, so that exp(A_log) is finite.
enum class DecayGate {
  Given,     // g itself
  Softplus,  // −exp(A_log)·softplus(g + dt_bias), softplus as in stepwell/ops/elementwise.h
  Bounded,   // lower_bound·sigmoid(exp(A_log)·(g + dt_bias)), lower_bound < 0
};

// The inputs of the gated delta rule. A gate is absent, one number per head (last extent 1) or one per channel.
// g and b stand for key heads (H of them) or for value heads (HV); value head j reads head ⌊j/(HV/H)⌋ of whatever has
// H heads (grouped value heads; HV is a multiple of H). A stride of 0 over tokens is a gate that is constant in time.
template <class T>
struct GatedDeltaInputs {
  View<const T, 3> q, k;  // [L, H, K]
  View<const T, 3> v;     // [L, HV, V]
  View<const T, 3> g;     // [L, H or HV, 1 or K] natural-log decay ≤ 0, −inf allowed (or what `gate` makes one of);
                          // absent: no decay
  View<const T, 3> b;     // [L, H or HV, 1 or K] erase gate; absent: nothing is erased
  View<const T, 3> w;     // [L, HV, 1 or V] write gate; absent: 1
  T scale = 1;            // on the output only
  bool l2norm = false;    // q, k ← x/√(Σx² + 1e-6) per head first
  DecayGate gate = DecayGate::Given;
  const T* A_log = nullptr;    // [heads of g], absent: 0
  const T* dt_bias = nullptr;  // [heads of g × last extent of g], absent: 0
  T lower_bound = -5;
};

// States live packed: units of 16 value columns, [state_units(V), K, 16] per value head; what is beyond V is carried
// along, columns whose values are 0 and whose outputs nobody sees.
inline constexpr std::int64_t kStateUnit = 16;
inline std::int64_t state_units(std::int64_t V) { return (V + kStateUnit - 1) / kStateUnit; }

// Between packed states [n, units, K, 16] and states [n, K, V] of any strides: key-first as they are, value-first
// ([n, V, K]) as a view with the last two strides exchanged. Packing puts zeros beyond V.
template <class T>
void pack_state(Context& ctx, View<const T, 3> state, View<T, 4> packed);
template <class T>
void unpack_state(Context& ctx, View<const T, 4> packed, View<T, 3> state);

enum class Form {
  Auto,       // Mode::Exact: recurrent; Mode::Fast: what is fastest for these gates, K and V
  Recurrent,  // token by token over the state; bits do not depend on how a sequence is split (X1)
  Chunked,    // matrix products inside chunks, the state between them; exact for every decay
};

template <class T>
struct GatedDeltaOptions {
  Form form = Form::Auto;
  // Tokens per chunk of the chunked form, ≥ 1 (0: what is fastest). Chunks end at every 64th token of a sequence too.
  std::int64_t chunk = 0;
  // What the backward pass starts from: the state before tokens 0, 64, 128 … of every sequence, in the rows of
  // checkpoint_row(). Absent: not kept.
  View<T, 4> checkpoints = {};      // [checkpoint_rows(), units, K, 16]
  View<const T, 3> o_factors = {};  // [L, HV, 1] what o is multiplied by last; absent: nothing
  // [S·HV] the largest Frobenius norm of the state among those after every 64th token and the last: GDN-2 is no
  // contraction (docs/gated-delta.md), so a state may grow although every gate is in range. Absent: not watched.
  T* largest_norm = nullptr;
};

inline constexpr std::int64_t kCheckpointTokens = 64;
// The row of value head `head` of sequence s before its token 64·i.
inline std::int64_t checkpoint_row(const Segments& segments, std::int64_t HV, std::int64_t s, std::int64_t i,
                                   std::int64_t head) {
  return (segments.begin(s) / kCheckpointTokens + s + i) * HV + head;
}
inline std::int64_t checkpoint_rows(const Segments& segments, std::int64_t HV) {
  return (segments.tokens() / kCheckpointTokens + segments.count()) * HV;
}

// The gated delta rule (Gated DeltaNet-2, arXiv:2605.22791), per value head with a state S [K, V]:
//   S̄ = exp(g)⊙S (rows);  u = w⊙v − S̄ᵀ(b⊙k);  S = S̄ + k uᵀ;  o = scale·Sᵀq
// With fewer gates it is KDA, Gated DeltaNet, DeltaNet, GLA, Mamba-2 (SSD), RetNet or linear attention
// (src/ops/gated_delta/README.md).
// Shapes  state [S·HV, units, K, 16] in/out, packed, row s·HV + head; o [L, HV, V].
// Range   g ≤ 0; b in [0, 2] for a stable rule, any number allowed; any L ≥ 0 and H, K, V ≥ 1. Inputs are not changed.
// Order   rows of S in increasing order, lanes over value columns: the recurrent form has the same bits however a
//         sequence is split, batched or threaded (X1), and on every instruction set with FMA (X7).
template <class T>
void gated_delta(Context& ctx, const GatedDeltaInputs<T>& in, const Segments& segments, View<T, 4> state, View<T, 3> o,
                 const GatedDeltaOptions<T>& options = {});

template <class T>
struct GatedDeltaGradients {    // outputs, overwritten; a default View or nullptr is skipped
  View<T, 3> q, k, v, g, b, w;  // of the inputs' shapes: summed over grouped heads and over the channels of one gate
  T* A_log = nullptr;
  T* dt_bias = nullptr;
  View<T, 4> state;  // of the initial state
};

// Adjoint of gated_delta. `state` is the initial state (absent: zero), grad_o [L, HV, V] and grad_state the gradients
// arriving at the outputs and the last state (absent: zero). `checkpoints` as the forward pass left them; absent: made
// again. Bits do not depend on threads (X3).
template <class T>
void gated_delta_backward(Context& ctx, const GatedDeltaInputs<T>& in, const Segments& segments, View<const T, 4> state,
                          View<const T, 4> checkpoints, View<const T, 3> grad_o, View<const T, 4> grad_state,
                          const GatedDeltaGradients<T>& out);

}  // namespace stepwell::ops
