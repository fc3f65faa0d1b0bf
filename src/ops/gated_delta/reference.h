// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "stepwell/core/flush_to_zero.h"
#include "stepwell/ops/gated_delta.h"

#include "ops/reference_functions.h"

// The gated delta rule and its adjoint as plain loops, token by token. Shapes and meaning as in
// stepwell/ops/gated_delta.h.
namespace stepwell::ops::reference {

// What one token of one value head enters the recurrence with.
template <class T>
struct GatedDeltaToken {
  std::vector<T> q, k;           // [K] after l2norm
  T q_factor = 1, k_factor = 1;  // of l2norm
  std::vector<T> g, decay;       // [K] log decay, and its exponential
  std::vector<T> b, e;           // [K] erase gate, and b⊙k
  std::vector<T> w, z;           // [V] write gate, and w⊙v
};

// Which head of `heads` value head j of HV reads.
inline std::int64_t head_of(std::int64_t j, std::int64_t heads, std::int64_t HV) { return j / (HV / heads); }
// A gate's channel: one for all where there is only one.
template <class T>
std::int64_t channel_of(const View<T, 3>& gate, std::int64_t d) {
  return gate.extent[2] == 1 ? 0 : d;
}

template <class T>
T l2_factor(const T* x, std::int64_t stride, std::int64_t n) {
  T squares = 0;
  for (std::int64_t i = 0; i < n; ++i) squares += x[i * stride] * x[i * stride];
  return 1 / std::sqrt(squares + T(1e-6));
}

template <class T>
T decay_slope(const GatedDeltaInputs<T>& in, std::int64_t head) {  // exp(A_log)
  return std::exp(std::min(in.A_log ? in.A_log[head] : T(0), T(80)));
}
// g + dt_bias.
template <class T>
T decay_preactivation(const GatedDeltaInputs<T>& in, std::int64_t t, std::int64_t head, std::int64_t channel) {
  return in.g(t, head, channel) + (in.dt_bias ? in.dt_bias[head * in.g.extent[2] + channel] : T(0));
}

template <class T>
GatedDeltaToken<T> token_of(const GatedDeltaInputs<T>& in, std::int64_t t, std::int64_t j) {
  const std::int64_t H = in.q.extent[1], K = in.q.extent[2], HV = in.v.extent[1], V = in.v.extent[2];
  const std::int64_t h = head_of(j, H, HV);
  GatedDeltaToken<T> x;
  if (in.l2norm) {
    x.q_factor = l2_factor(&in.q(t, h, 0), in.q.stride[2], K);
    x.k_factor = l2_factor(&in.k(t, h, 0), in.k.stride[2], K);
  }
  for (std::int64_t d = 0; d < K; ++d) {
    x.q.push_back(x.q_factor * in.q(t, h, d));
    x.k.push_back(x.k_factor * in.k(t, h, d));
    T g = 0;
    if (in.g) {
      const std::int64_t head = head_of(j, in.g.extent[1], HV), channel = channel_of(in.g, d);
      const T raw = decay_preactivation(in, t, head, channel);
      if (in.gate == DecayGate::Given) g = in.g(t, head, channel);
      if (in.gate == DecayGate::Softplus) g = -decay_slope(in, head) * softplus(raw);
      if (in.gate == DecayGate::Bounded) g = in.lower_bound * sigmoid(decay_slope(in, head) * raw);
    }
    x.g.push_back(g);
    x.decay.push_back(std::exp(g));
    x.b.push_back(in.b ? in.b(t, head_of(j, in.b.extent[1], HV), channel_of(in.b, d)) : T(0));
    x.e.push_back(x.b[d] * x.k[d]);
  }
  for (std::int64_t c = 0; c < state_units(V) * kStateUnit; ++c) {
    x.w.push_back(in.w && c < V ? in.w(t, j, channel_of(in.w, c)) : T(1));
    x.z.push_back(c < V ? x.w[c] * in.v(t, j, c) : T(0));
  }
  return x;
}

// Where element (d, c) of value head row `n` lies in a packed state.
template <class T>
T& state_cell(const View<T, 4>& state, std::int64_t n, std::int64_t d, std::int64_t c) {
  return state(n, c / kStateUnit, d, c % kStateUnit);
}

// One token: decays and writes S [K, V]; `decayed` (S̄) and u [V] on the way.
template <class T>
void advance(const GatedDeltaToken<T>& x, std::vector<T>& S, std::vector<T>& decayed, std::vector<T>& u) {
  const std::size_t K = x.k.size(), V = x.z.size();
  decayed.resize(K * V);
  u = x.z;
  for (std::size_t d = 0; d < K; ++d) {
    for (std::size_t c = 0; c < V; ++c) {
      decayed[d * V + c] = x.decay[d] * S[d * V + c];
      u[c] -= x.e[d] * decayed[d * V + c];
    }
  }
  for (std::size_t d = 0; d < K; ++d) {
    for (std::size_t c = 0; c < V; ++c) S[d * V + c] = decayed[d * V + c] + x.k[d] * u[c];
  }
}

// A state with its padding: [K, C], C columns.
template <class T>
std::vector<T> load_state(const View<const T, 4>& state, std::int64_t row, std::int64_t K, std::int64_t C) {
  std::vector<T> S(static_cast<std::size_t>(K * C));
  for (std::int64_t i = 0; i < K * C && state; ++i) S[i] = state_cell(state, row, i / C, i % C);
  return S;
}

template <class T>
void gated_delta(const GatedDeltaInputs<T>& in, const Segments& segments, View<T, 4> state, View<T, 3> o) {
  FlushToZero mode;
  const std::int64_t K = in.q.extent[2], HV = in.v.extent[1], V = in.v.extent[2], C = state_units(V) * kStateUnit;
  std::vector<T> decayed, u;
  for (std::int64_t s = 0; s < segments.count(); ++s) {
    for (std::int64_t j = 0; j < HV; ++j) {
      const std::int64_t row = s * HV + j;
      std::vector<T> S = load_state<T>(state, row, K, C);
      for (std::int64_t t = segments.begin(s); t < segments.end(s); ++t) {
        const GatedDeltaToken<T> x = token_of(in, t, j);
        advance(x, S, decayed, u);
        for (std::int64_t c = 0; c < V; ++c) {
          T sum = 0;
          for (std::int64_t d = 0; d < K; ++d) sum += x.q[d] * S[d * C + c];
          o(t, j, c) = in.scale * sum;
        }
      }
      for (std::int64_t i = 0; i < K * C; ++i) state_cell(state, row, i / C, i % C) = S[i];
    }
  }
}

// Adds the gradient of a log decay to those of what it was made of.
template <class T>
void add_decay_gradient(const GatedDeltaInputs<T>& in, const GatedDeltaGradients<T>& out, std::int64_t t,
                        std::int64_t j, std::int64_t d, T g, T grad) {
  const std::int64_t head = head_of(j, in.g.extent[1], in.v.extent[1]), channel = channel_of(in.g, d);
  T raw_grad = grad, slope_grad = 0;
  if (in.gate == DecayGate::Softplus) {
    raw_grad = -decay_slope(in, head) * softplus_derivative(decay_preactivation(in, t, head, channel)) * grad;
    slope_grad = grad == 0 ? T(0) : grad * g;  // g may be −inf, where nothing depends on it
  } else if (in.gate == DecayGate::Bounded) {
    const T slope = decay_slope(in, head), raw = decay_preactivation(in, t, head, channel), s = sigmoid(slope * raw);
    const T both = s * (1 - s);
    raw_grad = both == 0 ? T(0) : in.lower_bound * both * slope * grad;
    slope_grad = both == 0 ? T(0) : in.lower_bound * both * slope * raw * grad;
  }
  if (out.g) out.g(t, head, channel) += raw_grad;
  if (out.dt_bias) out.dt_bias[head * in.g.extent[2] + channel] += raw_grad;
  if (out.A_log && !(in.A_log && in.A_log[head] > 80)) out.A_log[head] += slope_grad;
}

template <class T>
void clear(const View<T, 3>& view) {
  for (std::int64_t i = 0; i < view.size() && view; ++i) {
    view(i / view.extent[2] / view.extent[1], i / view.extent[2] % view.extent[1], i % view.extent[2]) = 0;
  }
}

// Adds the gradient of x·factor (l2norm; factor 1: none) to that of x, given that of the result.
template <class T>
void add_l2_gradient(const std::vector<T>& y, const std::vector<T>& grad, T factor, bool l2norm, T* out,
                     std::int64_t stride) {
  T along = 0;
  for (std::size_t d = 0; d < y.size() && l2norm; ++d) along += y[d] * grad[d];
  for (std::size_t d = 0; d < y.size(); ++d) {
    out[static_cast<std::int64_t>(d) * stride] += factor * (grad[d] - y[d] * along);
  }
}

template <class T>
void gated_delta_backward(const GatedDeltaInputs<T>& in, const Segments& segments, View<const T, 4> state,
                          View<const T, 3> grad_o, View<const T, 4> grad_state, const GatedDeltaGradients<T>& out) {
  FlushToZero mode;
  const std::int64_t H = in.q.extent[1], K = in.q.extent[2], HV = in.v.extent[1], V = in.v.extent[2];
  const std::int64_t C = state_units(V) * kStateUnit;
  for (const auto* view : {&out.q, &out.k, &out.v, &out.g, &out.b, &out.w}) clear(*view);
  if (out.A_log) std::fill_n(out.A_log, in.g.extent[1], T(0));
  if (out.dt_bias) std::fill_n(out.dt_bias, in.g.extent[1] * in.g.extent[2], T(0));
  for (std::int64_t s = 0; s < segments.count(); ++s) {
    for (std::int64_t j = 0; j < HV; ++j) {
      const std::int64_t row = s * HV + j, h = head_of(j, H, HV), first = segments.begin(s);
      // All states, then backwards with G, the gradient of the state.
      std::vector<std::vector<T>> states = {load_state<T>(state, row, K, C)}, decayed_states, residuals;
      for (std::int64_t t = first; t < segments.end(s); ++t) {
        std::vector<T> S = states.back(), decayed, u;
        advance(token_of(in, t, j), S, decayed, u);
        states.push_back(S);
        decayed_states.push_back(decayed);
        residuals.push_back(u);
      }
      std::vector<T> G = load_state<T>(grad_state, row, K, C);
      for (std::int64_t t = segments.end(s) - 1; t >= first; --t) {
        const GatedDeltaToken<T> x = token_of(in, t, j);
        const std::vector<T>&S = states[t - first + 1], &decayed = decayed_states[t - first], &u = residuals[t - first];
        std::vector<T> grad_q(K), grad_k(K), grad_u(C);
        for (std::int64_t d = 0; d < K; ++d) {
          for (std::int64_t c = 0; c < C; ++c) {
            const T arriving = grad_o && c < V ? in.scale * grad_o(t, j, c) : T(0);
            T& cell = G[d * C + c];
            cell += x.q[d] * arriving;
            grad_q[d] += S[d * C + c] * arriving;
            grad_u[c] += cell * x.k[d];
            grad_k[d] += cell * u[c];
          }
        }
        for (std::int64_t d = 0; d < K; ++d) {
          T grad_e = 0, grad_g = 0;
          for (std::int64_t c = 0; c < C; ++c) {
            T& cell = G[d * C + c];
            grad_e -= decayed[d * C + c] * grad_u[c];
            cell -= x.e[d] * grad_u[c];
            grad_g += cell * decayed[d * C + c];
            cell *= x.decay[d];
          }
          grad_k[d] += x.b[d] * grad_e;
          if (out.b) out.b(t, head_of(j, in.b.extent[1], HV), channel_of(in.b, d)) += x.k[d] * grad_e;
          if (in.g) add_decay_gradient(in, out, t, j, d, x.g[d], grad_g);
        }
        for (std::int64_t c = 0; c < V; ++c) {
          if (out.v) out.v(t, j, c) += x.w[c] * grad_u[c];
          if (out.w) out.w(t, j, channel_of(in.w, c)) += in.v(t, j, c) * grad_u[c];
        }
        if (out.q) add_l2_gradient(x.q, grad_q, x.q_factor, in.l2norm, &out.q(t, h, 0), out.q.stride[2]);
        if (out.k) add_l2_gradient(x.k, grad_k, x.k_factor, in.l2norm, &out.k(t, h, 0), out.k.stride[2]);
      }
      for (std::int64_t i = 0; i < K * C && out.state; ++i) state_cell(out.state, row, i / C, i % C) = G[i];
    }
  }
}

}  // namespace stepwell::ops::reference
