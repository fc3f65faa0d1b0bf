// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/core/arena.h"
#include "stepwell/ops/mlstm.h"

#include "ops/gated_delta/delta_head.h"

// What the mLSTM cell is beside its matrix memory, for one head of one sequence: gates, stabiliser, normaliser and
// denominator. The memory itself is the gated delta rule with a decay F and a write gate I per token, nothing erased.
namespace stepwell::ops {

// Some tokens of one head. Numbers per token, but for the rows of q and k.
template <class T>
struct MlstmHead {
  std::int64_t tokens, K, V;
  HeadRows<const T> q, k, i, f;
  T scale, eps;
  bool sigmoid, normalise;
};

// What the gates come to, arrays of `tokens`.
template <class T>
struct MlstmGates {
  T* log_decay;  // log F
  T* input;      // I
  T* m;          // after each token; with the sigmoid gate 0
};
// `m`: before the first token.
void mlstm_gates(const MlstmHead<float>& head, float m, const MlstmGates<float>& out, Arena& scratch);
void mlstm_gates(const MlstmHead<double>& head, double m, const MlstmGates<double>& out, Arena& scratch);

// Advances n [K] over the tokens and gives a = scale·n·q of each. `states`, if wanted, takes n before every 64th token.
template <class T>
struct MlstmNormaliser {
  MlstmGates<const T> gates;
  T* n;
  T* a;
  T* states;
};
void mlstm_normaliser(const MlstmHead<float>& head, const MlstmNormaliser<float>& work, Arena& scratch);
void mlstm_normaliser(const MlstmHead<double>& head, const MlstmNormaliser<double>& work, Arena& scratch);

// 1/(max(|a|, exp(−m)) + eps) of every token (1 without normaliser), finite for any m.
void mlstm_factors(const MlstmHead<float>& head, const float* a, const float* m, float* factors);
void mlstm_factors(const MlstmHead<double>& head, const double* a, const double* m, double* factors);

// Rows of V times a factor each: out = factor·in, which may be out itself. `along`, if wanted, takes g·h of the row.
template <class T>
struct MlstmScaling {
  std::int64_t tokens, V;
  const T* factors;
  HeadRows<const T> in;
  HeadRows<T> out;
  HeadRows<const T> h;  // with `along`
  T* along;
};
void mlstm_scale_rows(const MlstmScaling<float>& work);
void mlstm_scale_rows(const MlstmScaling<double>& work);

// The adjoint beside the matrix memory. On entry grad_q, grad_k (absent: null) and the gradients of log F and I hold
// what comes through the matrix memory; what comes through the normaliser is added, the stabiliser's share too, and
// grad_log_decay and grad_input become those of the pre-activations f and i.
template <class T>
struct MlstmAdjoint {
  MlstmGates<const T> gates;
  const T *a, *along;  // along: g·h
  const T* states;     // n before every 64th token
  T m_before;
  T mu;       // in: what arrives at the last m, the memory held fixed; out: the same at the first
  T pull;     // ⟨dC, C⟩ + ⟨dn, n⟩ of the last state
  T* grad_n;  // [K] in/out
  HeadRows<T> grad_q, grad_k;
  T *grad_log_decay, *grad_input;
};
void mlstm_adjoint(const MlstmHead<float>& head, MlstmAdjoint<float>& work, Arena& scratch);
void mlstm_adjoint(const MlstmHead<double>& head, MlstmAdjoint<double>& work, Arena& scratch);

// Σ x·y.
float mlstm_dot(const float* x, const float* y, std::int64_t n);
double mlstm_dot(const double* x, const double* y, std::int64_t n);

}  // namespace stepwell::ops
