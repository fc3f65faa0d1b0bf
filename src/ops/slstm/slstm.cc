// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/slstm.h"

#include <algorithm>

#include "stepwell/ops/matmul.h"
#include "stepwell/ops/rows.h"

#include "ops/slstm/slstm_simd.h"

namespace stepwell::ops {

namespace {

// One head of one sequence, R left out. A task of its own: heads do not hear of one another.
template <class T>
SlstmHead<T> slstm_head(const SlstmInputs<T>& in, const Segments& segments, std::int64_t s, std::int64_t h) {
  const std::int64_t D = in.R.extent[2], width = in.R.extent[0] * D;
  return {segments.length(s),
          D,
          {in.x.row(segments.begin(s)) + h * D, in.x.stride[0]},
          width,
          in.bias ? in.bias + h * D : nullptr,
          nullptr};
}

// Head h of a state [S, 4, H·D].
template <class T>
SlstmCells<T> cells_of(View<T, 3> state, std::int64_t s, std::int64_t h, std::int64_t D) {
  T* y = state.row(s) + h * D;
  return {y, y + state.stride[1], y + 2 * state.stride[1], y + 3 * state.stride[1]};
}

template <class T>
HeadRows<T> head_rows(View<T, 2> rows, std::int64_t first, std::int64_t h, std::int64_t D) {
  return rows ? HeadRows<T>{rows.row(first) + h * D, rows.stride[0]} : HeadRows<T>{};
}
template <class T>
HeadRows<T> trace_rows(View<T, 3> trace, std::int64_t first, std::int64_t h) {
  return trace ? HeadRows<T>{trace.row(h) + first * trace.stride[1], trace.stride[1]} : HeadRows<T>{};
}

}  // namespace

template <class T>
void slstm(Context& ctx, const SlstmInputs<T>& in, const Segments& segments, View<T, 3> state, View<T, 2> y,
           View<T, 3> trace) {
  const std::int64_t H = in.R.extent[0], D = in.R.extent[2];
  ArenaScope scope(ctx.scratch());
  const auto transposed = View<T, 3>::contiguous(ctx.scratch().template allocate<T>(in.R.size()), {H, D, 4 * D});
  transpose<T>(ctx, in.R, transposed);
  ctx.parallel_for(segments.count() * H, [&](std::int64_t task, Arena& scratch) {
    const std::int64_t s = task / H, h = task % H, first = segments.begin(s);
    SlstmHead<T> head = slstm_head(in, segments, s, h);
    head.R = transposed.row(h);
    slstm_forward(head, cells_of(state, s, h, D), head_rows(y, first, h, D), trace_rows(trace, first, h), scratch);
  });
}

namespace {

template <class T>
class SlstmBackward {
 public:
  SlstmBackward(Context& ctx, const SlstmInputs<T>& in, const Segments& segments, View<const T, 3> state,
                View<const T, 2> y)
      : ctx_(ctx),
        in_(in),
        segments_(segments),
        state_(state),
        y_(y),
        H_(in.R.extent[0]),
        D_(in.R.extent[2]),
        zeros_(ctx.scratch().template allocate<T>(D_)) {
    std::fill_n(zeros_, D_, T(0));
  }

  // grad_x [L, 4·H·D] and the gradient of the initial state.
  void run(View<const T, 3> trace, View<const T, 2> grad_y, View<const T, 3> grad_last, View<T, 2> grad_x,
           View<T, 3> grad_state) const {
    ctx_.parallel_for(segments_.count() * H_, [&](std::int64_t task, Arena& scratch) {
      const std::int64_t s = task / H_, h = task % H_, first = segments_.begin(s);
      SlstmHead<T> head = slstm_head(in_, segments_, s, h);
      head.R = in_.R.row(h);
      SlstmAdjoint<T> work;
      work.start = state_ ? cells_of(state_, s, h, D_) : SlstmCells<const T>{zeros_, zeros_, zeros_, zeros_};
      work.y = head_rows(y_, first, h, D_);
      work.trace = trace_rows(trace, first, h);
      work.grad_y = head_rows(grad_y, first, h, D_);
      T* grad = scratch.allocate<T>(4 * D_);
      for (std::int64_t part = 0; part < 4; ++part) {
        if (grad_last) std::copy_n(cells_of(grad_last, s, h, D_).y + part * grad_last.stride[1], D_, grad + part * D_);
        else std::fill_n(grad + part * D_, D_, T(0));
      }
      work.grad = {grad, grad + D_, grad + 2 * D_, grad + 3 * D_};
      work.grad_x = head_rows(grad_x, first, h, D_);
      slstm_adjoint(head, work, scratch);
      for (std::int64_t part = 0; part < 4 && grad_state; ++part) {
        std::copy_n(grad + part * D_, D_, cells_of(grad_state, s, h, D_).y + part * grad_state.stride[1]);
      }
    });
  }

  // The recurrent weights': gradients of the pre-activations times the y that was heard, over all tokens.
  void weights(View<const T, 2> grad_x, View<T, 3> grad_R) const {
    const std::int64_t width = H_ * D_, L = in_.x.extent[0];
    const auto heard = View<T, 2>::contiguous(ctx_.scratch().template allocate<T>(L * width), {L, width});
    ctx_.parallel_for(segments_.count(), [&](std::int64_t s, Arena&) {
      for (std::int64_t t = segments_.begin(s); t < segments_.end(s); ++t) {
        if (t > segments_.begin(s)) std::copy_n(y_.row(t - 1), width, heard.row(t));
        else if (state_) std::copy_n(state_.row(s), width, heard.row(t));
        else std::fill_n(heard.row(t), width, T(0));
      }
    });
    for (std::int64_t h = 0; h < H_; ++h) {
      for (std::int64_t g = 0; g < 4; ++g) {
        const View<const T, 2> a{grad_x.data + g * width + h * D_, {L, D_}, grad_x.stride};
        const View<const T, 2> b{heard.data + h * D_, {L, D_}, heard.stride};
        matmul<T>(ctx_, Product::AtB, a, b, View<T, 2>::contiguous(grad_R.row(h) + g * D_ * D_, {D_, D_}));
      }
    }
  }

 private:
  Context& ctx_;
  const SlstmInputs<T>& in_;
  const Segments& segments_;
  View<const T, 3> state_;
  View<const T, 2> y_;
  std::int64_t H_, D_;
  T* zeros_;
};

}  // namespace

template <class T>
void slstm_backward(Context& ctx, const SlstmInputs<T>& in, const Segments& segments, View<const T, 3> state,
                    View<const T, 2> y, View<const T, 3> trace, View<const T, 2> grad_y, View<const T, 3> grad_last,
                    const SlstmGradients<T>& out) {
  ArenaScope scope(ctx.scratch());
  View<T, 2> grad_x = out.x;
  if (!grad_x) grad_x = View<T, 2>::contiguous(ctx.scratch().template allocate<T>(in.x.size()), in.x.extent);
  const SlstmBackward<T> backward(ctx, in, segments, state, y);
  backward.run(trace, grad_y, grad_last, grad_x, out.state);
  if (out.R) backward.weights(grad_x, out.R);
  if (out.bias) sum_rows<T>(ctx, grad_x, out.bias);
}

template void slstm(Context&, const SlstmInputs<float>&, const Segments&, View<float, 3>, View<float, 2>,
                    View<float, 3>);
template void slstm(Context&, const SlstmInputs<double>&, const Segments&, View<double, 3>, View<double, 2>,
                    View<double, 3>);
template void slstm_backward(Context&, const SlstmInputs<float>&, const Segments&, View<const float, 3>,
                             View<const float, 2>, View<const float, 3>, View<const float, 2>, View<const float, 3>,
                             const SlstmGradients<float>&);
template void slstm_backward(Context&, const SlstmInputs<double>&, const Segments&, View<const double, 3>,
                             View<const double, 2>, View<const double, 3>, View<const double, 2>, View<const double, 3>,
                             const SlstmGradients<double>&);

}  // namespace stepwell::ops
