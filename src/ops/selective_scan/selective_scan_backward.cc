// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "stepwell/ops/selective_scan.h"

#include "ops/selective_scan/run_blocks.h"

namespace stepwell::ops {

namespace {

// Blocks whose sums over channels share one buffer of 16 lanes: a chunk, the unit of work.
constexpr std::int64_t kChunkBlocks = 8;
// Sequences are taken in waves of about this many (sequence, chunk) pairs, so that scratch does not grow with the
// batch.
constexpr std::int64_t kWavePairs = 32;

// What one (sequence, block) carries from span to span: the gradient of the state, and sums over tokens.
template <class T>
struct Carried {
  T *lam, *A, *B, *C, *dt_bias, *skip;

  static std::int64_t size(std::int64_t state, bool constant_bc) { return state * (constant_bc ? 4 : 2) + 2 * kBlock; }
  Carried(T* data, std::int64_t state, bool constant_bc) : lam(data), A(data + state), B(nullptr), C(nullptr) {
    data += 2 * state;
    if (constant_bc) {
      B = data;
      C = data + state;
      data += 2 * state;
    }
    dt_bias = data;
    skip = data + kBlock;
  }
};

template <class T>
class BackwardPass {
 public:
  BackwardPass(Context& ctx, const SelectiveScanInputs<T>& in, const Segments& segments, View<const T, 3> h0,
               View<const T, 2> grad_y, View<const T, 3> grad_h, const SelectiveScanGradients<T>& out, const T* kept)
      : ctx_(ctx),
        in_(in),
        segments_(segments),
        h0_(h0),
        grad_y_(grad_y),
        grad_h_(grad_h),
        out_(out),
        kept_(kept),
        prepared_(ctx, in),
        blocks_(prepared_.blocks()),
        N_(in.A.extent[1]),
        state_(prepared_.state_size()),
        carried_size_(Carried<T>::size(state_, in.constant_bc)),
        chunks_per_group_((blocks_.per_group + kChunkBlocks - 1) / kChunkBlocks),
        chunks_(chunks_per_group_ * blocks_.groups) {}

  void run() {
    total_ = ctx_.scratch().allocate<T>(blocks_.count() * carried_size_);
    std::fill_n(total_, blocks_.count() * carried_size_, T(0));
    const std::int64_t wave = std::max<std::int64_t>(1, kWavePairs / std::max<std::int64_t>(1, chunks_));
    for (std::int64_t s = 0; s < segments_.count(); s += wave) run_wave(s, std::min(wave, segments_.count() - s));
    ctx_.parallel_for(blocks_.count(), [this](std::int64_t block, Arena&) { write_totals(block); });
  }

 private:
  std::int64_t spans(std::int64_t s) const { return (segments_.length(s) + kSpan - 1) / kSpan; }
  Carried<T> carried(std::int64_t w, std::int64_t block) const {
    return {carried_ + (w * blocks_.count() + block) * carried_size_, state_, in_.constant_bc};
  }
  // The state before span `span` of sequence s, the wave's sequence w.
  const T* state_before(std::int64_t s, std::int64_t w, std::int64_t span, std::int64_t block) const {
    if (!kept_) return checkpoint(w, span, block);
    return kept_ + (checkpoint_slot(segments_, s, span) * blocks_.count() + block) * state_;
  }
  T* checkpoint(std::int64_t w, std::int64_t span, std::int64_t block) const {
    return checkpoints_ + ((w * most_spans_ + span) * blocks_.count() + block) * state_;
  }
  // Sums of one chunk for a span: [kSpan, N] of B, then of C.
  T* partial(std::int64_t w, std::int64_t chunk) const { return partials_ + (w * chunks_ + chunk) * 2 * kSpan * N_; }

  // Sequences first … first + count − 1.
  void run_wave(std::int64_t first, std::int64_t count) {
    ArenaScope scope(ctx_.scratch());
    most_spans_ = 1;
    for (std::int64_t s = first; s < first + count; ++s) most_spans_ = std::max(most_spans_, spans(s));
    carried_ = ctx_.scratch().allocate<T>(count * blocks_.count() * carried_size_);
    if (!in_.constant_bc) partials_ = ctx_.scratch().allocate<T>(count * chunks_ * 2 * kSpan * N_);
    if (!kept_) checkpoints_ = ctx_.scratch().allocate<T>(count * most_spans_ * blocks_.count() * state_);
    ctx_.parallel_for(count * chunks_, [&](std::int64_t pair, Arena& scratch) {
      start(first, pair / chunks_, pair % chunks_, scratch);
    });
    for (std::int64_t round = 0; round < most_spans_; ++round) {
      ctx_.parallel_for(count * chunks_, [&](std::int64_t pair, Arena& scratch) {
        const std::int64_t w = pair / chunks_, span = spans(first + w) - 1 - round;
        if (span >= 0) run_chunk(first, w, pair % chunks_, span, scratch);
      });
      if (in_.constant_bc) continue;
      ctx_.parallel_for(count, [&](std::int64_t w, Arena&) {
        const std::int64_t span = spans(first + w) - 1 - round;
        if (span >= 0) combine(first, w, span);
      });
    }
    ctx_.parallel_for(blocks_.count(), [&](std::int64_t block, Arena&) {
      for (std::int64_t w = 0; w < count; ++w) finish(first, w, block);
    });
  }

  std::int64_t chunk_begin(std::int64_t chunk) const {
    return chunk / chunks_per_group_ * blocks_.per_group + chunk % chunks_per_group_ * kChunkBlocks;
  }
  std::int64_t chunk_end(std::int64_t chunk) const {
    return std::min(chunk_begin(chunk) + kChunkBlocks, (chunk / chunks_per_group_ + 1) * blocks_.per_group);
  }

  // Takes over the gradients that arrive at the last state; without kept checkpoints runs a sequence forwards to its
  // last one.
  void start(std::int64_t first, std::int64_t w, std::int64_t chunk, Arena& scratch) {
    const std::int64_t s = first + w, begin = chunk_begin(chunk), end = chunk_end(chunk);
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t channel = blocks_.channel(block), width = blocks_.width(block);
      Carried<T> c = carried(w, block);
      std::fill_n(c.lam, carried_size_, T(0));
      load_state<T>(grad_h_, s, channel, width, c.lam);
    }
    if (kept_) return;
    T* states = checkpoint(w, 0, begin);
    std::fill_n(states, (end - begin) * state_, T(0));
    for (std::int64_t block = begin; block < end; ++block) {
      load_state<T>(h0_, s, blocks_.channel(block), blocks_.width(block), states + (block - begin) * state_);
    }
    for (std::int64_t span = 1; span < spans(s); ++span) {
      T* next = checkpoint(w, span, begin);
      std::copy_n(states, (end - begin) * state_, next);
      states = next;
      const std::int64_t row = segments_.begin(s) + (span - 1) * kSpan;
      run_blocks(prepared_, row, row + kSpan, begin, end, kTile, states, View<T, 2>{}, scratch,
                 [](std::int64_t, std::int64_t, const T*) {});
    }
  }

  void run_chunk(std::int64_t first, std::int64_t w, std::int64_t chunk, std::int64_t span, Arena& scratch) {
    const std::int64_t s = first + w, row = segments_.begin(s) + span * kSpan;
    const std::int64_t tokens = std::min(kSpan, segments_.end(s) - row);
    const std::int64_t begin = chunk_begin(chunk), end = chunk_end(chunk);
    T* lanes = nullptr;
    if (!in_.constant_bc) {
      lanes = scratch.allocate<T>(2 * tokens * N_ * 16);
      std::fill_n(lanes, 2 * tokens * N_ * 16, T(0));
    }
    for (std::int64_t block = begin; block < end; ++block) {
      ScanBackward<T> work = work_at(row, tokens, block);
      if (block + 1 < blocks_.count()) {  // most likely this thread's next, whatever its chunk
        const ScanBackward<T> next = work_at(row, tokens, block + 1);
        work.next.tokens = tokens;
        work.next.add(next.in.u, next.in.u_stride);
        work.next.add(next.in.dt, next.in.dt_stride);
        work.next.add(next.in.z, next.in.z_stride);
        work.next.add(next.grad_y, next.grad_y_stride);
        work.next_out.tokens = tokens;
        work.next_out.add(next.u.data, next.u.stride);
        work.next_out.add(next.dt.data, next.dt.stride);
        work.next_out.add(next.z.data, next.z.stride);
      }
      const Carried<T> c = carried(w, block);
      work.h = state_before(s, w, span, block);
      work.lam = c.lam;
      work.A = c.A;
      work.dt_bias = c.dt_bias;
      work.skip = c.skip;
      work.B = lanes ? lanes : c.B;
      work.C = lanes ? lanes + tokens * N_ * 16 : c.C;
      scan_backward(work, scratch);
    }
    if (!lanes) return;
    fold_rows(lanes, tokens * N_, partial(w, chunk));
    fold_rows(lanes + tokens * N_ * 16, tokens * N_, partial(w, chunk) + kSpan * N_);
  }

  // The inputs and outputs by token.
  ScanBackward<T> work_at(std::int64_t row, std::int64_t tokens, std::int64_t block) const {
    const std::int64_t channel = blocks_.channel(block);
    const auto rows = [&](const View<T, 2>& view) -> ScanRows<T> {
      if (!view) return {};
      return {view.row(row) + channel, view.stride[0]};
    };
    ScanBackward<T> work{};
    work.in = prepared_.at(block, row);
    work.tokens = tokens;
    work.grad_y = grad_y_.row(row) + channel;
    work.grad_y_stride = grad_y_.stride[0];
    work.u = rows(out_.u);
    work.dt = rows(out_.dt);
    work.z = rows(out_.z);
    return work;
  }

  // Adds the chunks' sums in order into the gradients of B and C.
  void combine(std::int64_t first, std::int64_t w, std::int64_t span) {
    const std::int64_t row = segments_.begin(first + w) + span * kSpan;
    const std::int64_t tokens = std::min(kSpan, segments_.end(first + w) - row);
    const auto combine_into = [&](const View<T, 3>& out, std::int64_t offset) {
      for (std::int64_t t = 0; t < tokens && out; ++t) {
        for (std::int64_t group = 0; group < blocks_.groups; ++group) {
          T* sums = &out(row + t, group, 0);
          std::fill_n(sums, N_, T(0));
          for (std::int64_t i = 0; i < chunks_per_group_; ++i) {
            const T* part = partial(w, group * chunks_per_group_ + i) + offset + t * N_;
            for (std::int64_t n = 0; n < N_; ++n) sums[n] += part[n];
          }
        }
      }
    };
    combine_into(out_.B, 0);
    combine_into(out_.C, kSpan * N_);
  }

  // What is left of a sequence: the gradient of its initial state; its sums join those of the sequences before it.
  void finish(std::int64_t first, std::int64_t w, std::int64_t block) {
    const Carried<T> c = carried(w, block);
    if (out_.h) store_state(c.lam, first + w, blocks_.channel(block), blocks_.width(block), out_.h);
    T* total = total_ + block * carried_size_;
    for (std::int64_t i = state_; i < carried_size_; ++i) total[i] += c.lam[i];
  }

  void write_totals(std::int64_t block) {
    const Carried<T> total(total_ + block * carried_size_, state_, in_.constant_bc);
    const std::int64_t channel = blocks_.channel(block);
    for (std::int64_t d = 0; d < blocks_.width(block); ++d) {
      for (std::int64_t n = 0; n < N_; ++n) {
        const std::int64_t at = n * kBlock + d;
        if (out_.A) out_.A(channel + d, n) = total.A[at];
        if (in_.constant_bc && out_.B) out_.B(channel + d, 0, n) = total.B[at];
        if (in_.constant_bc && out_.C) out_.C(channel + d, 0, n) = total.C[at];
      }
      if (out_.dt_bias) out_.dt_bias[channel + d] = total.dt_bias[d];
      if (out_.D) out_.D[channel + d] = total.skip[d];
    }
  }

  Context& ctx_;
  const SelectiveScanInputs<T>& in_;
  const Segments& segments_;
  View<const T, 3> h0_;
  View<const T, 2> grad_y_;
  View<const T, 3> grad_h_;
  const SelectiveScanGradients<T>& out_;
  const T* kept_;
  const PreparedBlocks<T> prepared_;
  const ScanBlocks& blocks_;
  std::int64_t N_, state_, carried_size_, chunks_per_group_, chunks_, most_spans_ = 0;
  T *total_ = nullptr, *carried_ = nullptr, *checkpoints_ = nullptr, *partials_ = nullptr;
};

}  // namespace

template <class T>
void selective_scan_backward(Context& ctx, const SelectiveScanInputs<T>& in, const Segments& segments,
                             View<const T, 3> h0, View<const T, 2> grad_y, View<const T, 3> grad_h,
                             const SelectiveScanGradients<T>& out, const T* checkpoints) {
  ArenaScope scope(ctx.scratch());
  BackwardPass<T>(ctx, in, segments, h0, grad_y, grad_h, out, checkpoints).run();
}

template void selective_scan_backward(Context&, const SelectiveScanInputs<float>&, const Segments&,
                                      View<const float, 3>, View<const float, 2>, View<const float, 3>,
                                      const SelectiveScanGradients<float>&, const float*);
template void selective_scan_backward(Context&, const SelectiveScanInputs<double>&, const Segments&,
                                      View<const double, 3>, View<const double, 2>, View<const double, 3>,
                                      const SelectiveScanGradients<double>&, const double*);

}  // namespace stepwell::ops
