// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/ops/gated_delta.h"

namespace stepwell::ops {

// Some rows of one head: the first row and the distance between rows. Absent: null.
template <class T>
struct HeadRows {
  T* data = nullptr;
  std::int64_t stride = 0;
  T* row(std::int64_t t) const { return data + t * stride; }
  explicit operator bool() const { return data != nullptr; }
};

// A gate of one head: a number per channel, or one for all.
template <class T>
struct HeadGate : HeadRows<const T> {
  bool channels = false;
};

// What one value head reads, from some token on.
template <class T>
struct DeltaHead {
  std::int64_t K, V;
  HeadRows<const T> q, k, v;
  HeadGate<T> g, b, w;
  T scale;
  bool l2norm;
  DecayGate gate;
  T A_log;           // at most 80
  const T* dt_bias;  // [K] or [1], as g; null: 0
  T lower_bound;
};

// Of [L, heads, ·], the rows that value head j of HV reads, from token `first` on.
template <class T>
HeadRows<T> head_rows(const View<T, 3>& view, std::int64_t first, std::int64_t j, std::int64_t HV) {
  return {view.row(first) + j / (HV / view.extent[1]) * view.stride[1], view.stride[0]};
}

// One decay a head, or none, and nothing erased: chunks need no triangular solve and no decay per channel.
template <class T>
bool is_additive(const GatedDeltaInputs<T>& in) {
  return !in.b && (!in.g || in.g.extent[2] == 1);
}

// Value head j from token row `first` on.
template <class T>
DeltaHead<T> delta_head(const GatedDeltaInputs<T>& in, std::int64_t first, std::int64_t j) {
  const std::int64_t HV = in.v.extent[1];
  const auto head_of = [&](const View<const T, 3>& view) { return j / (HV / view.extent[1]); };
  const auto rows = [&](const View<const T, 3>& view) { return head_rows(view, first, j, HV); };
  const auto gate = [&](const View<const T, 3>& view, std::int64_t channels) {
    HeadGate<T> gate;
    if (view) static_cast<HeadRows<const T>&>(gate) = rows(view);
    gate.channels = view.extent[2] == channels && channels > 1;
    return gate;
  };
  DeltaHead<T> head{};
  head.K = in.q.extent[2];
  head.V = in.v.extent[2];
  head.q = rows(in.q);
  head.k = rows(in.k);
  head.v = rows(in.v);
  head.g = gate(in.g, head.K);
  head.b = gate(in.b, head.K);
  head.w = gate(in.w, head.V);
  head.scale = in.scale;
  head.l2norm = in.l2norm;
  head.gate = in.gate;
  if (in.A_log) head.A_log = in.A_log[head_of(in.g)] < 80 ? in.A_log[head_of(in.g)] : T(80);
  if (in.dt_bias) head.dt_bias = in.dt_bias + head_of(in.g) * in.g.extent[2];
  head.lower_bound = in.lower_bound;
  return head;
}

}  // namespace stepwell::ops
