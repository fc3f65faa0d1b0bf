// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/gated_delta/chunked.h"

namespace stepwell::ops {

namespace {

// Spans from the last to the first: the factors of all heads, then the columns of all value heads, then the tokens of
// all key heads, which sum what their value heads gave.
template <class T>
class BackwardPass {
 public:
  BackwardPass(const GatedDeltaInputs<T>& in, const Segments& segments, View<const T, 4> checkpoints,
               View<const T, 3> grad_o, View<const T, 4> grad_state, const GatedDeltaGradients<T>& out)
      : in_(in),
        segments_(segments),
        checkpoints_(checkpoints),
        grad_o_(grad_o),
        grad_state_(grad_state),
        out_(out),
        work_(in, segments, kBackwardChunk, true),
        H_(in.q.extent[1]),
        HV_(in.v.extent[1]),
        K_(in.q.extent[2]),
        Kp_(work_.layout().Kp),
        sums_layout_{Kp_, kBackwardChunk, work_.layout().erases},
        units_(checkpoints.extent[1]),
        lam_size_(units_ * kStateUnit * Kp_) {}

  void run(Context& ctx) {
    FlushToZero mode;
    const std::int64_t S = segments_.count(), wave = std::min(work_.wave(), S), gate_heads = in_.g.extent[1];
    Arena& scratch = ctx.scratch();
    factors_ = work_.allocate(scratch, wave);
    sums_ = scratch.allocate<T>(wave * HV_ * sums_layout_.size());
    lam_ = scratch.allocate<T>(wave * HV_ * lam_size_);
    gates_ = scratch.allocate<T>(wave * gate_heads * 2 * Kp_);
    totals_ = scratch.allocate<T>(gate_heads * 2 * Kp_);
    std::fill_n(totals_, gate_heads * 2 * Kp_, T(0));
    for (std::int64_t first = 0; first < S; first += wave) run_wave(ctx, first, std::min(wave, S - first));
    write_totals();
  }

 private:
  // Sequences first … first+count−1.
  void run_wave(Context& ctx, std::int64_t first, std::int64_t count) {
    const std::int64_t rounds = work_.most_spans(first, count);
    const std::int64_t gate_sums = in_.g.extent[1] * 2 * Kp_;
    std::fill_n(gates_, count * gate_sums, T(0));
    ctx.parallel_for(count * HV_, [&](std::int64_t task, Arena&) {
      T* lam = lam_ + task * lam_size_;
      if (grad_state_) {
        transpose_state(grad_state_.row(first * HV_ + task), units_, K_, lam);
      } else {
        std::fill_n(lam, lam_size_, T(0));
      }
    });
    for (std::int64_t round = 0; round < rounds; ++round) {
      // Of each sequence its last span first; sequences without a span left sit out.
      const auto each = [&](std::int64_t tasks_of_sequence, auto body) {
        ctx.parallel_for(count * tasks_of_sequence, [&](std::int64_t task, Arena& scratch) {
          const std::int64_t w = task / tasks_of_sequence, span = work_.spans(first + w) - 1 - round;
          if (span >= 0) body(w, first + w, span, task % tasks_of_sequence, scratch);
        });
      };
      if (work_.layout().key_size() > 0) {
        each(work_.key_heads(), [&](std::int64_t w, std::int64_t s, std::int64_t span, std::int64_t i, Arena& scratch) {
          work_.prepare_keys(w, s, span, i, factors_, scratch);
        });
      }
      each(work_.factor_heads(), [&](std::int64_t w, std::int64_t s, std::int64_t span, std::int64_t i,
                                     Arena& scratch) { work_.prepare_heads(w, s, span, i, factors_, scratch); });
      each(HV_, [&](std::int64_t w, std::int64_t s, std::int64_t span, std::int64_t j, Arena& scratch) {
        run_columns(w, s, span, j, scratch);
      });
      each(H_, [&](std::int64_t w, std::int64_t s, std::int64_t span, std::int64_t h, Arena& scratch) {
        run_tokens(w, s, span, h, scratch);
      });
    }
    for (std::int64_t task = 0; task < count * HV_ && out_.state; ++task) {
      restore_state(lam_ + task * lam_size_, units_, K_, out_.state.row(first * HV_ + task));
    }
    for (std::int64_t w = 0; w < count; ++w) add_sums(gates_ + w * gate_sums, gate_sums, totals_);
  }

  ChunkFactors<T> factors(std::int64_t w, std::int64_t j, std::int64_t c, std::int64_t tokens) const {
    const auto buffers = work_.of_head(factors_, w, j);
    return work_.layout().at(buffers.keys, buffers.heads, c, tokens);
  }
  T* sums(std::int64_t w, std::int64_t j) const { return sums_ + (w * HV_ + j) * sums_layout_.size(); }
  // Rows of a head from a token on; null where the view is absent.
  template <class U>
  static HeadRows<U> rows(const View<U, 3>& view, std::int64_t token, std::int64_t head) {
    if (!view) return {};
    return {view.row(token) + head * view.stride[1], view.stride[0]};
  }

  void run_columns(std::int64_t w, std::int64_t s, std::int64_t span, std::int64_t j, Arena& scratch) const {
    const std::int64_t token = work_.first_token(s, span);
    SpanBackward<T> work;
    work.head = delta_head(in_, token, j);
    work.tokens = work_.tokens(s, span);
    work.units = units_;
    work.layout = work_.layout();
    const auto buffers = work_.of_head(factors_, w, j);
    work.keys = buffers.keys;
    work.factors = buffers.heads;
    work.state = checkpoints_.row(checkpoint_row(segments_, HV_, s, span, j));
    work.lam = lam_ + (w * HV_ + j) * lam_size_;
    work.grad_o = rows(grad_o_, token, j);
    work.grad_v = rows(out_.v, token, j);
    work.grad_w = rows(out_.w, token, j);
    work.sums = sums(w, j);
    span_backward(work, scratch);
  }

  bool wants_decay() const { return in_.g && (out_.g || out_.A_log || out_.dt_bias); }

  // Key head h: chunk by chunk backwards, from the sums of its value heads to the gradients of its tokens.
  void run_tokens(std::int64_t w, std::int64_t s, std::int64_t span, std::int64_t h, Arena& scratch) const {
    const std::int64_t n = work_.tokens(s, span), G = HV_ / H_, size = kBackwardChunk * Kp_;
    const bool shared = work_.factor_heads() == H_;
    T* buffer = scratch.allocate<T>(4 * size);
    for (std::int64_t c = work_.layout().chunks(n) - 1; c >= 0; --c) {
      const std::int64_t token = work_.first_token(s, span) + c * kBackwardChunk;
      const ChunkGradients<T> gradients{buffer, buffer + size, out_.b ? buffer + 2 * size : nullptr,
                                        wants_decay() ? buffer + 3 * size : nullptr, !shared};
      ChunkFactors<T> f = factors(w, h * G, c, n);
      if (!shared) std::fill_n(buffer, 4 * size, T(0));
      for (std::int64_t j = h * G + 1; shared && j < (h + 1) * G; ++j) {
        add_sums(sums_layout_.data(sums(w, j), c), sums_layout_.chunk_size(f.tokens),
                 sums_layout_.data(sums(w, h * G), c));
      }
      for (std::int64_t j = h * G; j < (shared ? h * G + 1 : (h + 1) * G); ++j) {
        f = factors(w, j, c, n);
        const ColumnSums<T> of_columns = sums_layout_.at(sums(w, j), c, f.tokens);
        const DeltaHead<T> head = delta_head(in_, token, j);
        chunk_gradients(head, 0, f, of_columns, gradients, scratch);
        const bool last = shared || j + 1 == (h + 1) * G;
        finish_gates(w, token, j, last, f.tokens, head, gradients, size);
      }
      const auto finish = [&](const T* y, const T* factor, const T* gradient, const View<T, 3>& out) {
        if (out) row_gradients({f.tokens, K_, Kp_, y, in_.l2norm ? factor : nullptr, gradient, rows(out, token, h)});
      };
      finish(f.q, f.q_factor, gradients.q, out_.q);
      finish(f.k, f.k_factor, gradients.k, out_.k);
    }
  }

  // Writes the gradients of the gates that value head j was the last to give to, and clears them for the next.
  void finish_gates(std::int64_t w, std::int64_t token, std::int64_t j, bool last_of_group, std::int64_t tokens,
                    const DeltaHead<T>& head, const ChunkGradients<T>& gradients, std::int64_t size) const {
    const auto complete = [&](const View<const T, 3>& gate) { return last_of_group || gate.extent[1] != H_; };
    const auto index = [&](const View<const T, 3>& gate) { return j / (HV_ / gate.extent[1]); };
    if (gradients.b && complete(in_.b)) {
      gate_gradients({tokens, K_, Kp_, gradients.b, true, rows(out_.b, token, index(in_.b)), head.b.channels});
      std::fill_n(gradients.b, size, T(0));
    }
    if (gradients.g && complete(in_.g)) {
      T* gates = gates_ + (w * in_.g.extent[1] + index(in_.g)) * 2 * Kp_;
      decay_gradients({head, 0, tokens, Kp_, gradients.g, gates, gates + Kp_});
      gate_gradients(
          {tokens, K_, Kp_, gradients.g, head.g.channels, rows(out_.g, token, index(in_.g)), head.g.channels});
      std::fill_n(gradients.g, size, T(0));
    }
  }

  void write_totals() const {
    const std::int64_t channels = in_.g.extent[2];
    for (std::int64_t head = 0; head < in_.g.extent[1]; ++head) {
      const T *dt_bias = totals_ + head * 2 * Kp_, *A_log = dt_bias + Kp_;
      if (out_.dt_bias) std::copy_n(dt_bias, channels, out_.dt_bias + head * channels);
      // Beyond 80 A_log has no effect.
      const bool clamped = in_.A_log && in_.A_log[head] > 80;
      if (out_.A_log) out_.A_log[head] = clamped ? T(0) : sum_lanes(A_log, channels);
    }
  }

  const GatedDeltaInputs<T>& in_;
  const Segments& segments_;
  View<const T, 4> checkpoints_;
  View<const T, 3> grad_o_;
  View<const T, 4> grad_state_;
  const GatedDeltaGradients<T>& out_;
  const SpanWork<T> work_;
  std::int64_t H_, HV_, K_, Kp_;
  SumsLayout sums_layout_;
  std::int64_t units_, lam_size_;
  typename SpanWork<T>::Buffers factors_{};
  T *sums_ = nullptr, *lam_ = nullptr, *gates_ = nullptr, *totals_ = nullptr;
};

// The checkpoints of a forward pass from `state`.
template <class T>
View<const T, 4> make_checkpoints(Context& ctx, const GatedDeltaInputs<T>& in, const Segments& segments,
                                  View<const T, 4> state) {
  const std::int64_t HV = in.v.extent[1], K = in.q.extent[2], units = state_units(in.v.extent[2]);
  const std::int64_t heads = segments.count() * HV, size = units * K * kStateUnit;
  const auto packed = [&](std::int64_t count) {
    return View<T, 4>::contiguous(ctx.scratch().template allocate<T>(count * size), {count, units, K, kStateUnit});
  };
  GatedDeltaOptions<T> options;
  options.checkpoints = packed(checkpoint_rows(segments, HV));
  const View<T, 4> last = packed(heads);
  for (std::int64_t i = 0; i < heads; ++i) {
    if (state) {
      std::copy_n(state.row(i), size, last.row(i));
    } else {
      std::fill_n(last.row(i), size, T(0));
    }
  }
  gated_delta<T>(ctx, in, segments, last, {}, options);
  return options.checkpoints;
}

}  // namespace

template <class T>
void gated_delta_backward(Context& ctx, const GatedDeltaInputs<T>& in, const Segments& segments, View<const T, 4> state,
                          View<const T, 4> checkpoints, View<const T, 3> grad_o, View<const T, 4> grad_state,
                          const GatedDeltaGradients<T>& out) {
  ArenaScope scope(ctx.scratch());
  if (!checkpoints) checkpoints = make_checkpoints(ctx, in, segments, state);
  BackwardPass<T>(in, segments, checkpoints, grad_o, grad_state, out).run(ctx);
}

template void gated_delta_backward(Context&, const GatedDeltaInputs<float>&, const Segments&, View<const float, 4>,
                                   View<const float, 4>, View<const float, 3>, View<const float, 4>,
                                   const GatedDeltaGradients<float>&);
template void gated_delta_backward(Context&, const GatedDeltaInputs<double>&, const Segments&, View<const double, 4>,
                                   View<const double, 4>, View<const double, 3>, View<const double, 4>,
                                   const GatedDeltaGradients<double>&);

}  // namespace stepwell::ops
