// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "stepwell/core/flush_to_zero.h"
#include "stepwell/ops/slstm.h"

#include "ops/reference_functions.h"

// The sLSTM cell and its adjoint as plain loops, token by token. Shapes and meaning as in stepwell/ops/slstm.h.
namespace stepwell::ops::reference {

// One sequence's state: y, c, n, m [H·D] each.
template <class T>
using SlstmCells = std::array<std::vector<T>, 4>;

// What a token did.
template <class T>
struct SlstmToken {
  std::vector<T> raw[4];               // pre-activations of the gates i, f, z, o
  std::vector<T> input, forget, past;  // I, F, and how much of m' is the past's: 1, 0 or, where equal, ½
  SlstmCells<T> after;
};

template <class T>
SlstmCells<T> load_cells(View<const T, 3> state, std::int64_t s, std::int64_t width) {
  SlstmCells<T> cells;
  for (std::int64_t part = 0; part < 4; ++part) {
    for (std::int64_t j = 0; j < width; ++j) cells[part].push_back(state ? state(s, part, j) : T(0));
  }
  return cells;
}
template <class T>
void store_cells(const SlstmCells<T>& cells, std::int64_t s, View<T, 3> state) {
  for (std::int64_t part = 0; part < 4; ++part) {
    for (std::size_t j = 0; j < cells[part].size(); ++j) state(s, part, j) = cells[part][j];
  }
}

template <class T>
SlstmToken<T> slstm_token(const SlstmInputs<T>& in, std::int64_t t, const SlstmCells<T>& before) {
  const std::int64_t H = in.R.extent[0], D = in.R.extent[2], width = H * D;
  const auto& [y, c, n, m] = before;
  SlstmToken<T> x;
  x.after = before;
  for (std::int64_t g = 0; g < 4; ++g) {
    for (std::int64_t j = 0; j < width; ++j) {
      T sum = in.x(t, g * width + j) + (in.bias ? in.bias[g * width + j] : T(0));
      for (std::int64_t d = 0; d < D; ++d) sum += in.R(j / D, g * D + j % D, d) * y[j / D * D + d];
      x.raw[g].push_back(sum);
    }
  }
  for (std::int64_t j = 0; j < width; ++j) {
    const T i = x.raw[0][j], f = x.raw[1][j];
    const T kept = std::min(f, T(0)) - std::log1p(std::exp(-std::abs(f))) + m[j];
    const bool fresh = n[j] == 0;
    const T stabiliser = fresh ? i : std::max(kept, i);
    const bool nothing = std::isinf(stabiliser);  // neither a past nor an input: −∞ − (−∞)
    x.input.push_back(nothing ? T(0) : std::exp(i - stabiliser));
    x.forget.push_back(nothing ? T(1) : std::min(std::exp(kept - stabiliser), T(1)));
    x.past.push_back(fresh || kept < i ? T(0) : kept > i ? T(1) : T(0.5));
    x.after[1][j] = x.forget[j] * c[j] + x.input[j] * std::tanh(x.raw[2][j]);
    x.after[2][j] = x.forget[j] * n[j] + x.input[j];
    x.after[3][j] = stabiliser;
    x.after[0][j] = x.after[2][j] == 0 ? T(0) : sigmoid(x.raw[3][j]) * x.after[1][j] / x.after[2][j];
  }
  return x;
}

template <class T>
void slstm(const SlstmInputs<T>& in, const Segments& segments, View<T, 3> state, View<T, 2> y) {
  FlushToZero mode;
  const std::int64_t width = in.R.extent[0] * in.R.extent[2];
  for (std::int64_t s = 0; s < segments.count(); ++s) {
    SlstmCells<T> cells = load_cells<T>(state, s, width);
    for (std::int64_t t = segments.begin(s); t < segments.end(s); ++t) {
      cells = slstm_token(in, t, cells).after;
      for (std::int64_t j = 0; j < width; ++j) y(t, j) = cells[0][j];
    }
    store_cells(cells, s, state);
  }
}

// The gradients out.x, out.R, out.bias and out.state are all wanted.
template <class T>
void slstm_backward(const SlstmInputs<T>& in, const Segments& segments, View<const T, 3> state, View<const T, 2> grad_y,
                    View<const T, 3> grad_last, const SlstmGradients<T>& out) {
  FlushToZero mode;
  const std::int64_t H = in.R.extent[0], D = in.R.extent[2], width = H * D;
  std::fill_n(out.R.data, out.R.size(), T(0));
  std::fill_n(out.bias, 4 * width, T(0));
  for (std::int64_t s = 0; s < segments.count(); ++s) {
    const SlstmCells<T> start = load_cells<T>(state, s, width);
    std::vector<SlstmToken<T>> tokens;
    for (std::int64_t t = segments.begin(s); t < segments.end(s); ++t) {
      tokens.push_back(slstm_token(in, t, tokens.empty() ? start : tokens.back().after));
    }
    // The gradient of the memory, and that of m with the true memory held fixed.
    SlstmCells<T> G = load_cells<T>(grad_last, s, width);
    std::vector<T> mu = G[3];
    const SlstmCells<T>& end = tokens.empty() ? start : tokens.back().after;
    for (std::int64_t j = 0; j < width; ++j) mu[j] -= G[1][j] * end[1][j] + G[2][j] * end[2][j];
    for (std::int64_t t = segments.end(s) - 1; t >= segments.begin(s); --t) {
      const std::int64_t index = t - segments.begin(s);
      const SlstmToken<T>& x = tokens[index];
      const SlstmCells<T>& before = index == 0 ? start : tokens[index - 1].after;
      std::vector<T> raw(4 * width);
      for (std::int64_t j = 0; j < width; ++j) {
        const T y = x.after[0][j], n = x.after[2][j], z = std::tanh(x.raw[2][j]), o = sigmoid(x.raw[3][j]);
        const T grad = (grad_y ? grad_y(t, j) : T(0)) + G[0][j];
        G[1][j] += n == 0 ? T(0) : grad * o / n;
        G[2][j] -= n == 0 ? T(0) : grad * y / n;
        const T kept = x.forget[j] * (G[1][j] * before[1][j] + G[2][j] * before[2][j]) + x.past[j] * mu[j];
        raw[j] = x.input[j] * (z * G[1][j] + G[2][j]) + (1 - x.past[j]) * mu[j];
        raw[width + j] = kept * sigmoid(-x.raw[1][j]);
        raw[2 * width + j] = G[1][j] * x.input[j] * (1 - z * z);
        raw[3 * width + j] = grad * y * sigmoid(-x.raw[3][j]);
        mu[j] *= x.past[j];
        G[1][j] *= x.forget[j];
        G[2][j] *= x.forget[j];
        G[3][j] = kept;
        G[0][j] = 0;
      }
      for (std::int64_t i = 0; i < 4 * width; ++i) {
        const std::int64_t h = i % width / D, row = i / width * D + i % D;
        out.x(t, i) = raw[i];
        out.bias[i] += raw[i];
        for (std::int64_t d = 0; d < D; ++d) {
          out.R(h, row, d) += raw[i] * before[0][h * D + d];
          G[0][h * D + d] += in.R(h, row, d) * raw[i];
        }
      }
    }
    store_cells(G, s, out.state);
  }
}

}  // namespace stepwell::ops::reference
