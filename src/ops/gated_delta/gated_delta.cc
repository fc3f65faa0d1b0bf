// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/gated_delta.h"

#include <algorithm>
#include <cmath>

#include "ops/gated_delta/chunked.h"
#include "ops/gated_delta/recurrent_simd.h"

namespace stepwell::ops {

namespace {

// Tasks to aim at before a head is cut into groups of columns, and the units of such a group.
constexpr std::int64_t kTasks = 8, kGroupUnits = 4;

template <class T>
class RecurrentForm {
 public:
  RecurrentForm(const GatedDeltaInputs<T>& in, const Segments& segments, View<T, 4> state, View<T, 3> o,
                const GatedDeltaOptions<T>& options)
      : in_(in), segments_(segments), state_(state), o_(o), options_(options) {
    const std::int64_t heads = segments.count() * in.v.extent[1], units = state.extent[1];
    // The norm of a head is summed over all its columns, by one task.
    const bool whole = options.largest_norm || heads >= kTasks;
    group_ = whole ? units : kGroupUnits;
    groups_ = (units + group_ - 1) / group_;
  }

  void run(Context& ctx) const {
    const std::int64_t HV = in_.v.extent[1];
    ctx.parallel_for(segments_.count() * HV * groups_, [&](std::int64_t task, Arena& scratch) {
      run_group(task / groups_ / HV, task / groups_ % HV, task % groups_, scratch);
    });
  }

 private:
  // One group of columns of value head j of sequence s.
  void run_group(std::int64_t s, std::int64_t j, std::int64_t group, Arena& scratch) const {
    const std::int64_t HV = in_.v.extent[1], K = in_.q.extent[2], row = s * HV + j, tokens = segments_.length(s);
    const std::int64_t first = segments_.begin(s), size = K * kStateUnit;
    DeltaTileWork<T> work;
    work.head = delta_head(in_, first, j);
    work.first_unit = group * group_;
    work.units = std::min(group_, state_.extent[1] - work.first_unit);
    work.state = state_.row(row) + work.first_unit * size;
    if (o_) work.o = head_rows(o_, first, j, HV);
    if (options_.o_factors) work.o_factors = head_rows(options_.o_factors, first, j, HV);
    T largest = 0;
    for (work.first = 0; work.first < tokens; work.first += kDeltaTile) {
      scratch.check_interrupt();
      const std::int64_t checkpoint = work.first / kCheckpointTokens;
      if (options_.checkpoints && work.first % kCheckpointTokens == 0) {
        T* kept = options_.checkpoints.row(checkpoint_row(segments_, HV, s, checkpoint, j));
        std::copy_n(work.state, work.units * size, kept + work.first_unit * size);
      }
      work.tokens = std::min(kDeltaTile, tokens - work.first);
      work.next_tokens = std::min(kDeltaTile, tokens - work.first - work.tokens);
      run_recurrent_tile(work, scratch);
      const std::int64_t done = work.first + work.tokens;
      if (options_.largest_norm && (done % kCheckpointTokens == 0 || done == tokens)) {
        const T norm = std::sqrt(sum_squares(work.state, work.units * size));
        if (!(norm <= largest) && !std::isnan(largest)) largest = norm;  // a NaN stays
      }
    }
    if (options_.largest_norm) options_.largest_norm[row] = largest;
  }

  const GatedDeltaInputs<T>& in_;
  const Segments& segments_;
  View<T, 4> state_;
  View<T, 3> o_;
  const GatedDeltaOptions<T>& options_;
  std::int64_t group_, groups_;
};

// The form that Form::Auto stands for, by what the gates and heads are. Token by token is the fastest forward pass of
// all but additive memories with one decay a head whose keys many value heads share (Mamba-2: a chunk's scores serve
// all of them) or are long (mLSTM: strips of the state leave the first cache between two tokens).
template <class T>
Form form_for(Mode mode, const GatedDeltaInputs<T>& in) {
  const bool shared = in.v.extent[1] >= 4 * in.q.extent[1];
  const std::int64_t K = in.q.extent[2];
  return mode == Mode::Fast && is_additive(in) && ((shared && K > 1) || K > 128) ? Form::Chunked : Form::Recurrent;
}

}  // namespace

template <class T>
void gated_delta(Context& ctx, const GatedDeltaInputs<T>& in, const Segments& segments, View<T, 4> state, View<T, 3> o,
                 const GatedDeltaOptions<T>& options) {
  const Form form = options.form == Form::Auto ? form_for(ctx.mode(), in) : options.form;
  if (form == Form::Chunked) {
    return gated_delta_chunked(ctx, in, segments, state, o, options);
  }
  RecurrentForm<T>(in, segments, state, o, options).run(ctx);
}

template void gated_delta(Context&, const GatedDeltaInputs<float>&, const Segments&, View<float, 4>, View<float, 3>,
                          const GatedDeltaOptions<float>&);
template void gated_delta(Context&, const GatedDeltaInputs<double>&, const Segments&, View<double, 4>, View<double, 3>,
                          const GatedDeltaOptions<double>&);

}  // namespace stepwell::ops
