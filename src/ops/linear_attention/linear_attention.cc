// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/linear_attention.h"

#include <algorithm>

#include "ops/linear_attention/linear_attention_simd.h"

namespace stepwell::ops {

namespace {

template <class T>
AttentionHead<T> head_of(const LinearAttentionInputs<T>& in, std::int64_t first, std::int64_t tokens,
                         std::int64_t head) {
  return {tokens,
          in.q.extent[2],
          in.v.extent[2],
          in.q.row(first) + head * in.q.stride[1],
          in.k.row(first) + head * in.k.stride[1],
          in.v.row(first) + head * in.v.stride[1],
          in.q.stride[0],
          in.k.stride[0],
          in.v.stride[0],
          in.decay ? in.decay[head] : T(1),
          in.scale};
}

// A state [K, V] (absent: zero) ↔ [K, padded_columns(V)].
template <class T>
T* load_state(View<const T, 3> state, std::int64_t index, std::int64_t K, std::int64_t V, Arena& scratch) {
  const std::int64_t row = padded_columns(V);
  T* S = scratch.allocate<T>(K * row);
  std::fill_n(S, K * row, T(0));
  for (std::int64_t i = 0; i < K && state; ++i) std::copy_n(state.row(index) + i * state.stride[1], V, S + i * row);
  return S;
}
template <class T>
void store_state(const T* S, View<T, 3> state, std::int64_t index, std::int64_t K, std::int64_t V) {
  for (std::int64_t i = 0; i < K; ++i) {
    std::copy_n(S + i * padded_columns(V), V, state.row(index) + i * state.stride[1]);
  }
}

}  // namespace

template <class T>
void linear_attention(Context& ctx, const LinearAttentionInputs<T>& in, const Segments& segments, View<T, 3> state,
                      View<T, 3> y) {
  const std::int64_t H = in.q.extent[1], K = in.q.extent[2], V = in.v.extent[2];
  ctx.parallel_for(segments.count() * H, [&](std::int64_t task, Arena& scratch) {
    const std::int64_t s = task / H, head = task % H, first = segments.begin(s);
    T* S = load_state<T>(state, task, K, V, scratch);
    attention_forward(head_of(in, first, segments.length(s), head), S, y.row(first) + head * y.stride[1], y.stride[0]);
    store_state(S, state, task, K, V);
  });
}

template <class T>
void linear_attention_backward(Context& ctx, const LinearAttentionInputs<T>& in, const Segments& segments,
                               View<const T, 3> state, View<const T, 3> grad_y, View<const T, 3> grad_state,
                               const LinearAttentionGradients<T>& out) {
  const std::int64_t H = in.q.extent[1], K = in.q.extent[2], V = in.v.extent[2];
  ctx.parallel_for(segments.count() * H, [&](std::int64_t task, Arena& scratch) {
    const std::int64_t s = task / H, head = task % H, first = segments.begin(s);
    const AttentionHead<T> work = head_of(in, first, segments.length(s), head);
    const auto rows = [&](const auto& view) { return view ? view.row(first) + head * view.stride[1] : nullptr; };
    // The gradient of q needs the states, forwards; those of k and v need the states' gradients, backwards. No
    // state is kept.
    if (out.q) {
      T* S = load_state<T>(state, task, K, V, scratch);
      attention_grad_q(work, S, rows(grad_y), grad_y.stride[0], rows(out.q), out.q.stride[0]);
    }
    T* G = load_state<T>(grad_state, task, K, V, scratch);
    attention_grad_kv(work, G,
                      {rows(grad_y), rows(out.k), rows(out.v), grad_y.stride[0], out.k.stride[0], out.v.stride[0]});
    if (out.state) store_state(G, out.state, task, K, V);
  });
}

template void linear_attention(Context&, const LinearAttentionInputs<float>&, const Segments&, View<float, 3>,
                               View<float, 3>);
template void linear_attention(Context&, const LinearAttentionInputs<double>&, const Segments&, View<double, 3>,
                               View<double, 3>);
template void linear_attention_backward(Context&, const LinearAttentionInputs<float>&, const Segments&,
                                        View<const float, 3>, View<const float, 3>, View<const float, 3>,
                                        const LinearAttentionGradients<float>&);
template void linear_attention_backward(Context&, const LinearAttentionInputs<double>&, const Segments&,
                                        View<const double, 3>, View<const double, 3>, View<const double, 3>,
                                        const LinearAttentionGradients<double>&);

}  // namespace stepwell::ops
