// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/gated_delta/chunked.h"

#include <cmath>

#include "ops/gated_delta/recurrent_simd.h"

namespace stepwell::ops {

namespace {

// What is fastest at every size measured: scores and solve grow with the square of a chunk, but those of a memory with
// one decay a head that erases nothing are cheap.
template <class T>
std::int64_t fastest_chunk(const GatedDeltaInputs<T>& in) {
  return is_additive(in) ? 32 : 16;
}

// Span by span: the factors of all heads, then the columns of all value heads.
template <class T>
class ChunkedForm {
 public:
  ChunkedForm(const GatedDeltaInputs<T>& in, const Segments& segments, View<T, 4> state, View<T, 3> o,
              const GatedDeltaOptions<T>& options)
      : in_(in),
        segments_(segments),
        state_(state),
        o_(o),
        options_(options),
        work_(in, segments, options.chunk ? options.chunk : fastest_chunk(in), false),
        HV_(in.v.extent[1]) {}

  void run(Context& ctx) {
    if (options_.largest_norm) std::fill_n(options_.largest_norm, segments_.count() * HV_, T(0));
    const std::int64_t S = segments_.count(), wave = std::min(work_.wave(), S);
    factors_ = work_.allocate(ctx.scratch(), wave);
    for (std::int64_t first = 0; first < S; first += wave) {
      const std::int64_t count = std::min(wave, S - first), spans = work_.most_spans(first, count);
      for (std::int64_t span = 0; span < spans; ++span) {
        const auto each = [&](std::int64_t heads, auto body) {
          ctx.parallel_for(count * heads, [&](std::int64_t task, Arena& scratch) {
            const std::int64_t w = task / heads, s = first + w;
            if (span < work_.spans(s)) body(w, s, task % heads, scratch);
          });
        };
        if (work_.layout().key_size() > 0) {
          each(work_.key_heads(), [&](std::int64_t w, std::int64_t s, std::int64_t i, Arena& scratch) {
            work_.prepare_keys(w, s, span, i, factors_, scratch);
          });
        }
        each(work_.factor_heads(), [&](std::int64_t w, std::int64_t s, std::int64_t i, Arena& scratch) {
          work_.prepare_heads(w, s, span, i, factors_, scratch);
        });
        each(HV_,
             [&](std::int64_t w, std::int64_t s, std::int64_t j, Arena& scratch) { run_span(w, s, span, j, scratch); });
      }
    }
  }

 private:
  void run_span(std::int64_t w, std::int64_t s, std::int64_t span, std::int64_t j, Arena& scratch) const {
    const std::int64_t token = work_.first_token(s, span), row = s * HV_ + j;
    const std::int64_t size = state_.extent[1] * state_.extent[2] * kStateUnit;
    SpanForward<T> work;
    work.head = delta_head(in_, token, j);
    work.tokens = work_.tokens(s, span);
    work.units = state_.extent[1];
    work.layout = work_.layout();
    const auto factors = work_.of_head(factors_, w, j);
    work.keys = factors.keys;
    work.factors = factors.heads;
    work.state = state_.row(row);
    if (o_) work.o = head_rows(o_, token, j, HV_);
    if (options_.o_factors) work.o_factors = head_rows(options_.o_factors, token, j, HV_);
    if (options_.checkpoints) {
      std::copy_n(work.state, size, options_.checkpoints.row(checkpoint_row(segments_, HV_, s, span, j)));
    }
    span_forward(work, scratch);
    if (!options_.largest_norm) return;
    const T norm = std::sqrt(sum_squares(work.state, size));
    T& largest = options_.largest_norm[row];
    if (norm > largest || std::isnan(norm)) largest = norm;  // no number is greater than a NaN: it stays
  }

  const GatedDeltaInputs<T>& in_;
  const Segments& segments_;
  View<T, 4> state_;
  View<T, 3> o_;
  const GatedDeltaOptions<T>& options_;
  const SpanWork<T> work_;
  std::int64_t HV_;
  typename SpanWork<T>::Buffers factors_{};
};

}  // namespace

template <class T>
void gated_delta_chunked(Context& ctx, const GatedDeltaInputs<T>& in, const Segments& segments, View<T, 4> state,
                         View<T, 3> o, const GatedDeltaOptions<T>& options) {
  ArenaScope scope(ctx.scratch());
  ChunkedForm<T>(in, segments, state, o, options).run(ctx);
}

template void gated_delta_chunked(Context&, const GatedDeltaInputs<float>&, const Segments&, View<float, 4>,
                                  View<float, 3>, const GatedDeltaOptions<float>&);
template void gated_delta_chunked(Context&, const GatedDeltaInputs<double>&, const Segments&, View<double, 4>,
                                  View<double, 3>, const GatedDeltaOptions<double>&);

}  // namespace stepwell::ops
