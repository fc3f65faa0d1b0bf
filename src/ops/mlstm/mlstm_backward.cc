// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/mlstm/cell.h"

namespace stepwell::ops {

namespace {

template <class T>
class MlstmBackward {
 public:
  MlstmBackward(Context& ctx, const MlstmInputs<T>& in, const Segments& segments, const MlstmState<const T>& state)
      : ctx_(ctx), in_(in), segments_(segments), state_(state), cell_(ctx, in) {
    const std::int64_t rows = segments.count() * in.q.extent[1], numbers = in.q.extent[1] * cell_.L;
    normalisers_ = ctx.scratch().template allocate<T>(checkpoint_rows(segments, in.q.extent[1]) * in.q.extent[2]);
    along_ = ctx.scratch().template allocate<T>(numbers);
    grad_log_decay_ = ctx.scratch().template allocate<T>(numbers);
    grad_input_ = ctx.scratch().template allocate<T>(numbers);
    grad_n_ = ctx.scratch().template allocate<T>(rows * in.q.extent[2]);
  }

  void run(View<const T, 4> checkpoints, View<const T, 3> h, const MlstmState<const T>& last, View<const T, 3> grad_h,
           const MlstmState<const T>& grad_last, const MlstmGradients<T>& out) const {
    const std::int64_t rows = segments_.count() * in_.q.extent[1];
    ctx_.parallel_for(rows, [&](std::int64_t row, Arena& scratch) { prepare(row, scratch); });
    View<T, 3> grad_memory;  // what arrives at the matrix memory: grad_h over the denominators
    if (grad_h) {
      grad_memory = View<T, 3>::contiguous(ctx_.scratch().template allocate<T>(in_.v.size()), in_.v.extent);
    }
    ctx_.parallel_for(rows, [&](std::int64_t row, Arena&) { scale_gradients(row, h, grad_h, grad_memory); });
    GatedDeltaGradients<T> through;
    through.q = out.q;
    through.k = out.k;
    through.v = out.v;
    through.g = cell_.template gate_view<T>(grad_log_decay_);
    through.w = cell_.template gate_view<T>(grad_input_);
    through.state = out.state.C;
    if (!through.state && out.state.m && state_.C) {  // the gradient of m is made of that of C
      through.state = View<T, 4>::contiguous(ctx_.scratch().template allocate<T>(state_.C.size()), state_.C.extent);
    }
    gated_delta_backward<T>(ctx_, cell_.memory(), segments_, state_.C, checkpoints, grad_memory, grad_last.C, through);
    ctx_.parallel_for(
        rows, [&](std::int64_t row, Arena& scratch) { finish(row, last, grad_last, through.state, out, scratch); });
  }

 private:
  // Where the normaliser's states of a row are kept.
  T* normalisers(std::int64_t row) const {
    const std::int64_t H = in_.q.extent[1], first = segments_.begin(row / H) / kCheckpointTokens + row / H;
    const std::int64_t per_head = segments_.tokens() / kCheckpointTokens + segments_.count();
    return normalisers_ + (row % H * per_head + first) * in_.q.extent[2];
  }
  T m_before(std::int64_t row) const { return state_.m ? state_.m[row] : T(0); }

  // Gates, normaliser and denominators once more.
  void prepare(std::int64_t row, Arena& scratch) const {
    const MlstmHead<T> head = cell_.head(segments_, row);
    const std::int64_t at = cell_.at(segments_, row);
    mlstm_gates(head, m_before(row), cell_.gates(at), scratch);
    if (in_.normalise) {
      T* n = grad_n_ + row * head.K;  // its place is free until the end
      std::fill_n(n, head.K, T(0));
      if (state_.n) std::copy_n(state_.n.row(row), head.K, n);
      mlstm_normaliser(head, {cell_.made_gates(at), n, cell_.a + at, normalisers(row)}, scratch);
    }
    mlstm_factors(head, cell_.a + at, cell_.m + at, cell_.factors + at);
  }

  void scale_gradients(std::int64_t row, View<const T, 3> h, View<const T, 3> grad_h, View<T, 3> grad_memory) const {
    const std::int64_t H = in_.q.extent[1], first = segments_.begin(row / H), at = cell_.at(segments_, row);
    const std::int64_t tokens = segments_.length(row / H);
    if (!grad_h) {
      std::fill_n(along_ + at, tokens, T(0));
      return;
    }
    const auto rows = [&](const auto& view) { return view.row(first) + row % H * view.stride[1]; };
    mlstm_scale_rows(MlstmScaling<T>{tokens,
                                     in_.v.extent[2],
                                     cell_.factors + at,
                                     {rows(grad_h), grad_h.stride[0]},
                                     {rows(grad_memory), grad_memory.stride[0]},
                                     {rows(h), h.stride[0]},
                                     along_ + at});
  }

  // Σ x·y over the memory of a row; 0 where one is absent.
  T dot_memory(const MlstmState<const T>& x, const MlstmState<const T>& y, std::int64_t row) const {
    const std::int64_t K = in_.q.extent[2], size = state_units(in_.v.extent[2]) * K * kStateUnit;
    T sum = 0;
    if (x.C && y.C) sum += mlstm_dot(x.C.row(row), y.C.row(row), size);
    if (x.n && y.n) sum += mlstm_dot(x.n.row(row), y.n.row(row), K);
    return sum;
  }

  void finish(std::int64_t row, const MlstmState<const T>& last, const MlstmState<const T>& grad_last,
              View<const T, 4> grad_C, const MlstmGradients<T>& out, Arena& scratch) const {
    const MlstmHead<T> head = cell_.head(segments_, row);
    const std::int64_t H = in_.q.extent[1], first = segments_.begin(row / H), at = cell_.at(segments_, row);
    const bool stabilised = in_.input_gate == InputGate::Exponential;
    T* grad_n = grad_n_ + row * head.K;
    std::fill_n(grad_n, head.K, T(0));
    if (grad_last.n) std::copy_n(grad_last.n.row(row), head.K, grad_n);
    MlstmAdjoint<T> work;
    work.gates = cell_.made_gates(at);
    work.a = cell_.a + at;
    work.along = along_ + at;
    work.states = normalisers(row);
    work.m_before = m_before(row);
    work.mu = grad_last.m ? grad_last.m[row] : T(0);
    work.pull = stabilised ? dot_memory(grad_last, last, row) : T(0);
    work.mu -= work.pull;
    work.grad_n = grad_n;
    const auto rows = [&](const View<T, 3>& view) {
      return view ? HeadRows<T>{view.row(first) + row % H * view.stride[1], view.stride[0]} : HeadRows<T>{};
    };
    work.grad_q = rows(out.q);
    work.grad_k = rows(out.k);
    work.grad_log_decay = grad_log_decay_ + at;
    work.grad_input = grad_input_ + at;
    mlstm_adjoint(head, work, scratch);
    for (std::int64_t t = 0; t < head.tokens; ++t) {
      if (out.i) out.i(first + t, row % H) = grad_input_[at + t];
      if (out.f) out.f(first + t, row % H) = grad_log_decay_[at + t];
    }
    if (out.state.n) std::copy_n(grad_n, head.K, out.state.n.row(row));
    if (out.state.m && head.tokens == 0) {
      out.state.m[row] = grad_last.m ? grad_last.m[row] : T(0);  // handed through to the last bit
    } else if (out.state.m) {
      const MlstmState<const T> grads{grad_C, View<const T, 2>{grad_n, {1, head.K}, {0, 1}}, nullptr};
      out.state.m[row] = stabilised ? work.mu + dot_memory(grads, state_, row) : work.mu;
    }
  }

  Context& ctx_;
  const MlstmInputs<T>& in_;
  const Segments& segments_;
  const MlstmState<const T>& state_;
  MlstmCell<T> cell_;
  T *normalisers_, *along_, *grad_log_decay_, *grad_input_, *grad_n_;
};

}  // namespace

template <class T>
void mlstm_backward(Context& ctx, const MlstmInputs<T>& in, const Segments& segments, const MlstmState<const T>& state,
                    View<const T, 4> checkpoints, View<const T, 3> h, const MlstmState<const T>& last,
                    View<const T, 3> grad_h, const MlstmState<const T>& grad_last, const MlstmGradients<T>& out) {
  ArenaScope scope(ctx.scratch());
  MlstmBackward<T>(ctx, in, segments, state).run(checkpoints, h, last, grad_h, grad_last, out);
}

template void mlstm_backward(Context&, const MlstmInputs<float>&, const Segments&, const MlstmState<const float>&,
                             View<const float, 4>, View<const float, 3>, const MlstmState<const float>&,
                             View<const float, 3>, const MlstmState<const float>&, const MlstmGradients<float>&);
template void mlstm_backward(Context&, const MlstmInputs<double>&, const Segments&, const MlstmState<const double>&,
                             View<const double, 4>, View<const double, 3>, const MlstmState<const double>&,
                             View<const double, 3>, const MlstmState<const double>&, const MlstmGradients<double>&);

}  // namespace stepwell::ops
