// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "stepwell/core/flush_to_zero.h"
#include "stepwell/ops/mlstm.h"

#include "ops/reference_functions.h"

// The mLSTM cell and its adjoint as plain loops, token by token. Shapes and meaning as in stepwell/ops/mlstm.h.
namespace stepwell::ops::reference {

// One head's memory, and what a token did to it.
template <class T>
struct MlstmMemory {
  std::vector<T> C, n;  // [K·V], [K]; V with its padding
  T m = 0;
};
template <class T>
struct MlstmToken {
  MlstmMemory<T> after;
  T log_forget, forget, input;  // log sigmoid(f), F, I
  T a, denominator;             // scale·n·q; that of h
  bool reads_normaliser;        // |a| is above the floor
  T tie;                        // 0.5 where they are equal, else 1
};

template <class T>
T log_sigmoid(T x) {
  return std::min(x, T(0)) - std::log1p(std::exp(-std::abs(x)));
}

template <class T>
MlstmMemory<std::remove_const_t<T>> load_memory(const MlstmState<T>& state, std::int64_t row, std::int64_t K,
                                                std::int64_t C) {
  MlstmMemory<std::remove_const_t<T>> memory;
  for (std::int64_t d = 0; d < K; ++d) {
    for (std::int64_t c = 0; c < C; ++c) {
      memory.C.push_back(state.C ? state.C(row, c / kStateUnit, d, c % kStateUnit) : T(0));
    }
    memory.n.push_back(state.n ? state.n(row, d) : T(0));
  }
  memory.m = state.m ? state.m[row] : T(0);
  return memory;
}
template <class T>
void store_memory(const MlstmMemory<T>& memory, std::int64_t row, const MlstmState<T>& state) {
  const auto K = static_cast<std::int64_t>(memory.n.size()), C = static_cast<std::int64_t>(memory.C.size()) / K;
  for (std::int64_t i = 0; i < K * C && state.C; ++i) {
    state.C(row, i % C / kStateUnit, i / C, i % C % kStateUnit) = memory.C[i];
  }
  for (std::int64_t d = 0; d < K && state.n; ++d) state.n(row, d) = memory.n[d];
  if (state.m) state.m[row] = memory.m;
}

template <class T>
MlstmToken<T> mlstm_token(const MlstmInputs<T>& in, std::int64_t t, std::int64_t h, const MlstmMemory<T>& before) {
  const std::int64_t K = in.q.extent[2], V = in.v.extent[2], C = static_cast<std::int64_t>(before.C.size()) / K;
  MlstmToken<T> x;
  x.after = before;
  x.log_forget = log_sigmoid(in.f(t, h));
  T floor = 1;
  if (in.input_gate == InputGate::Sigmoid) {
    x.forget = sigmoid(in.f(t, h));
    x.input = sigmoid(in.i(t, h));
  } else {
    const T kept = x.log_forget + before.m, m = std::max(kept, in.i(t, h));
    // Nothing remembered and nothing written: −∞ − (−∞).
    x.forget = std::isinf(m) ? T(1) : std::exp(kept - m);
    x.input = std::isinf(m) ? T(0) : std::exp(in.i(t, h) - m);
    x.after.m = m;
    floor = std::exp(-m);
  }
  x.a = 0;
  for (std::int64_t d = 0; d < K; ++d) {
    for (std::int64_t c = 0; c < C; ++c) {
      T& cell = x.after.C[d * C + c];
      cell = x.forget * cell + x.input * in.k(t, h, d) * (c < V ? in.v(t, h, c) : T(0));
    }
    if (!in.normalise) continue;  // n is not used and stays as it is
    x.after.n[d] = x.forget * x.after.n[d] + x.input * in.k(t, h, d);
    x.a += in.scale * in.q(t, h, d) * x.after.n[d];
  }
  x.reads_normaliser = in.normalise && std::abs(x.a) >= floor;
  x.tie = std::abs(x.a) == floor ? T(0.5) : T(1);
  x.denominator = in.normalise ? std::max(std::abs(x.a), floor) + in.eps : T(1);
  return x;
}

template <class T>
void mlstm(const MlstmInputs<T>& in, const Segments& segments, const MlstmState<T>& state, View<T, 3> h) {
  FlushToZero mode;
  const std::int64_t H = in.q.extent[1], K = in.q.extent[2], V = in.v.extent[2], C = state_units(V) * kStateUnit;
  for (std::int64_t s = 0; s < segments.count(); ++s) {
    for (std::int64_t head = 0; head < H; ++head) {
      MlstmMemory<T> memory = load_memory(state, s * H + head, K, C);
      for (std::int64_t t = segments.begin(s); t < segments.end(s); ++t) {
        const MlstmToken<T> x = mlstm_token(in, t, head, memory);
        memory = x.after;
        for (std::int64_t c = 0; c < V; ++c) {
          T sum = 0;
          for (std::int64_t d = 0; d < K; ++d) sum += in.scale * in.q(t, head, d) * memory.C[d * C + c];
          h(t, head, c) = sum / x.denominator;
        }
      }
      store_memory(memory, s * H + head, state);
    }
  }
}

// Dot product of two vectors.
template <class T>
T dot(const std::vector<T>& a, const std::vector<T>& b) {
  T sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

template <class T>
void mlstm_backward(const MlstmInputs<T>& in, const Segments& segments, const MlstmState<const T>& state,
                    View<const T, 3> grad_h, const MlstmState<const T>& grad_last, const MlstmGradients<T>& out) {
  FlushToZero mode;
  const std::int64_t H = in.q.extent[1], K = in.q.extent[2], V = in.v.extent[2], C = state_units(V) * kStateUnit;
  for (std::int64_t s = 0; s < segments.count(); ++s) {
    for (std::int64_t head = 0; head < H; ++head) {
      const std::int64_t row = s * H + head, first = segments.begin(s);
      const MlstmMemory<T> start = load_memory(state, row, K, C);
      std::vector<MlstmToken<T>> tokens;
      for (std::int64_t t = first; t < segments.end(s); ++t) {
        tokens.push_back(mlstm_token(in, t, head, tokens.empty() ? start : tokens.back().after));
      }
      // The gradient of the memory, and that of m with the true memory held fixed.
      MlstmMemory<T> G = load_memory(grad_last, row, K, C);
      const MlstmMemory<T>& end = tokens.empty() ? start : tokens.back().after;
      const bool stabilised = in.input_gate == InputGate::Exponential;
      T mu = grad_last.m ? grad_last.m[row] : T(0);
      if (stabilised) mu -= dot(G.C, end.C) + dot(G.n, end.n);
      for (std::int64_t t = segments.end(s) - 1; t >= first; --t) {
        const MlstmToken<T>& x = tokens[t - first];
        const MlstmMemory<T>& before = t == first ? start : tokens[t - first - 1].after;
        T along = 0;  // g·h
        std::vector<T> g(C);
        for (std::int64_t c = 0; c < V; ++c) {
          T sum = 0;
          for (std::int64_t d = 0; d < K; ++d) sum += in.scale * in.q(t, head, d) * x.after.C[d * C + c];
          const T arriving = grad_h ? grad_h(t, head, c) : T(0);
          g[c] = arriving / x.denominator;
          along += arriving * sum / x.denominator;
        }
        T grad_a = 0;
        if (x.reads_normaliser) grad_a = -x.tie * (x.a > 0 ? 1 : x.a < 0 ? -1 : 0) * along / x.denominator;
        T grad_input = 0, grad_forget = 0;
        for (std::int64_t d = 0; d < K; ++d) {
          const T q = in.scale * in.q(t, head, d), k = in.k(t, head, d);
          T grad_q = grad_a * x.after.n[d], grad_k = 0;
          G.n[d] += grad_a * q;
          for (std::int64_t c = 0; c < C; ++c) {
            T& cell = G.C[d * C + c];
            cell += q * g[c];
            grad_q += x.after.C[d * C + c] * g[c];
            grad_k += cell * (c < V ? in.v(t, head, c) : T(0));
            grad_forget += cell * before.C[d * C + c];
            if (out.v && c < V) {
              if (d == 0) out.v(t, head, c) = 0;
              out.v(t, head, c) += x.input * cell * k;
            }
          }
          if (in.normalise) {
            grad_k += G.n[d];
            grad_forget += G.n[d] * before.n[d];
          }
          grad_input += k * grad_k;
          if (out.q) out.q(t, head, d) = in.scale * grad_q;
          if (out.k) out.k(t, head, d) = x.input * grad_k;
        }
        T grad_i, grad_log_forget;
        if (stabilised) {
          mu -= in.eps / x.denominator * along;
          const T kept = x.log_forget + before.m, from_past = kept > in.i(t, head) ? 1 : kept < in.i(t, head) ? 0 : 0.5;
          grad_i = x.input * grad_input + (1 - from_past) * mu;
          grad_log_forget = x.forget * grad_forget + from_past * mu;
          mu *= from_past;
        } else {
          grad_i = x.input * grad_input * sigmoid(-in.i(t, head));
          grad_log_forget = x.forget * grad_forget;
        }
        if (out.i) out.i(t, head) = grad_i;
        if (out.f) out.f(t, head) = grad_log_forget * sigmoid(-in.f(t, head));
        for (T& cell : G.C) cell *= x.forget;
        for (T& cell : G.n) cell *= in.normalise ? x.forget : T(1);
      }
      G.m = stabilised ? mu + dot(G.C, start.C) + dot(G.n, start.n) : mu;
      store_memory(G, row, out.state);
    }
  }
}

}  // namespace stepwell::ops::reference
