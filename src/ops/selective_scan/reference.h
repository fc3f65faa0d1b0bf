// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "stepwell/core/flush_to_zero.h"
#include "stepwell/ops/selective_scan.h"

#include "ops/reference_functions.h"

// The selective scan and its adjoint as plain loops over tokens, channels and states: what the kernels are measured
// against. Shapes and meaning as in stepwell/ops/selective_scan.h.
namespace stepwell::ops::reference {

// φ(x) = (eˣ − 1)/x, the exact zero-order hold of the input, and its derivative.
template <class T>
T phi(T x) {
  return std::abs(x) < T(1e-5) ? 1 + x / 2 + x * x / 6 : std::expm1(x) / x;
}
template <class T>
T phi_derivative(T x) {
  if (std::abs(x) >= T(0.5)) return (std::exp(x) - phi(x)) / x;
  // Σ_{k≥1} k x^(k−1)/(k+1)!: the quotient above loses its digits near 0.
  T sum = 0, power = 1;
  for (int k = 1; k <= 16; ++k) {
    power /= k + 1;  // x^(k−1)/(k+1)!
    sum += k * power;
    power *= x;
  }
  return sum;
}

// What one (token, channel) contributes: the step and the chain through softplus.
template <class T>
struct Step {
  T dt, slope;
};
template <class T>
Step<T> step_of(const SelectiveScanInputs<T>& in, std::int64_t t, std::int64_t d) {
  const T raw = in.dt(t, d) + (in.dt_bias ? in.dt_bias[d] : T(0));
  if (!in.softplus) return {raw, 1};
  return {softplus(raw), softplus_derivative(raw)};
}

// dt·A; a step of 0 leaves the state untouched whatever A is.
template <class T>
T exponent(T dt, T A) {
  return dt == 0 ? T(0) : dt * A;
}

template <class T>
T input_weight(const SelectiveScanInputs<T>& in, T dt, T x) {
  return in.discretisation == Discretisation::Euler ? dt : dt * phi(x);
}

// Where B and C of (token, channel) live: first and second index of their views.
template <class T>
struct BcIndex {
  std::int64_t row, group;
};
template <class T>
BcIndex<T> bc_index(const SelectiveScanInputs<T>& in, std::int64_t t, std::int64_t d) {
  if (in.constant_bc) return {d, 0};
  return {t, d / (in.u.extent[1] / in.B.extent[1])};
}

template <class T>
void selective_scan(const SelectiveScanInputs<T>& in, const Segments& segments, View<T, 3> h, View<T, 2> y,
                    View<T, 3> h_all = {}) {
  FlushToZero mode;
  const std::int64_t D = in.A.extent[0], N = in.A.extent[1];
  for (std::int64_t s = 0; s < segments.count(); ++s) {
    for (std::int64_t t = segments.begin(s); t < segments.end(s); ++t) {
      for (std::int64_t d = 0; d < D; ++d) {
        const T dt = step_of(in, t, d).dt, u = in.u(t, d);
        const auto at = bc_index(in, t, d);
        T sum = 0;
        for (std::int64_t n = 0; n < N; ++n) {
          const T x = exponent(dt, in.A(d, n));
          T& state = h(s, n, d);
          state = std::exp(x) * state + input_weight(in, dt, x) * u * in.B(at.row, at.group, n);
          if (h_all) h_all(t, n, d) = state;
          sum += in.C(at.row, at.group, n) * state;
        }
        if (in.D) sum += in.D[d] * u;
        y(t, d) = in.z ? sum * silu(in.z(t, d)) : sum;
      }
    }
  }
}

// The adjoint, with every state kept.
template <class T>
void selective_scan_backward(const SelectiveScanInputs<T>& in, const Segments& segments, View<const T, 3> h0,
                             View<const T, 2> grad_y, View<const T, 3> grad_h, const SelectiveScanGradients<T>& out) {
  FlushToZero mode;
  const std::int64_t D = in.A.extent[0], N = in.A.extent[1];
  const auto clear = [](auto view) {
    if (!view) return;
    for (std::int64_t i = 0; i < view.extent[0]; ++i) {
      for (std::int64_t j = 0; j < view.extent[1]; ++j) {
        if constexpr (sizeof(view.extent) == 2 * sizeof(std::int64_t)) {
          view(i, j) = 0;
        } else {
          for (std::int64_t k = 0; k < view.extent[2]; ++k) view(i, j, k) = 0;
        }
      }
    }
  };
  clear(out.A);
  clear(out.B);
  clear(out.C);
  for (std::int64_t d = 0; d < D; ++d) {
    T grad_skip = 0, grad_bias = 0;
    for (std::int64_t s = 0; s < segments.count(); ++s) {
      const std::int64_t first = segments.begin(s), T_s = segments.length(s);
      std::vector<T> h(static_cast<std::size_t>((T_s + 1) * N)), lam(static_cast<std::size_t>(N));
      for (std::int64_t n = 0; n < N; ++n) h[n] = h0 ? h0(s, n, d) : T(0);
      for (std::int64_t t = 0; t < T_s; ++t) {
        const T dt = step_of(in, first + t, d).dt, u = in.u(first + t, d);
        const auto at = bc_index(in, first + t, d);
        for (std::int64_t n = 0; n < N; ++n) {
          const T x = exponent(dt, in.A(d, n));
          h[(t + 1) * N + n] = std::exp(x) * h[t * N + n] + input_weight(in, dt, x) * u * in.B(at.row, at.group, n);
        }
      }
      for (std::int64_t n = 0; n < N; ++n) lam[n] = grad_h ? grad_h(s, n, d) : T(0);
      for (std::int64_t t = T_s - 1; t >= 0; --t) {
        const Step<T> step = step_of(in, first + t, d);
        const T dt = step.dt, u = in.u(first + t, d);
        const auto at = bc_index(in, first + t, d);
        T grad_q = grad_y(first + t, d);
        if (in.z) {
          T q = in.D ? in.D[d] * u : T(0);
          for (std::int64_t n = 0; n < N; ++n) q += in.C(at.row, at.group, n) * h[(t + 1) * N + n];
          const T z = in.z(first + t, d);
          if (out.z) out.z(first + t, d) = grad_q * q * silu_derivative(z);
          grad_q *= silu(z);
        }
        T grad_u = in.D ? grad_q * in.D[d] : T(0), grad_dt = 0;
        grad_skip += grad_q * u;
        for (std::int64_t n = 0; n < N; ++n) {
          const T A = in.A(d, n), x = exponent(dt, A), a = std::exp(x), w = input_weight(in, dt, x);
          const T B = in.B(at.row, at.group, n), C = in.C(at.row, at.group, n);
          lam[n] += grad_q * C;
          const T e = a * h[t * N + n];
          if (out.C) out.C(at.row, at.group, n) += grad_q * h[(t + 1) * N + n];
          if (out.B) out.B(at.row, at.group, n) += lam[n] * w * u;
          // d(dt·φ(dt·A))/d dt = exp(dt·A), and d/dA = dt²·φ'(dt·A). A decay of −∞ passes no gradient.
          const bool euler = in.discretisation == Discretisation::Euler;
          grad_u += lam[n] * w * B;
          grad_dt += lam[n] * ((std::isinf(A) ? T(0) : e * A) + (euler ? T(1) : a) * u * B);
          if (out.A) out.A(d, n) += lam[n] * (e * dt + (euler ? T(0) : dt * dt * phi_derivative(x) * u * B));
          lam[n] *= a;
        }
        const T grad_raw = grad_dt * step.slope;
        grad_bias += grad_raw;
        if (out.u) out.u(first + t, d) = grad_u;
        if (out.dt) out.dt(first + t, d) = grad_raw;
      }
      for (std::int64_t n = 0; n < N && out.h; ++n) out.h(s, n, d) = lam[n];
    }
    if (out.D) out.D[d] = grad_skip;
    if (out.dt_bias) out.dt_bias[d] = grad_bias;
  }
}

}  // namespace stepwell::ops::reference
