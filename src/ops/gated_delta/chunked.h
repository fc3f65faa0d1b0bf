// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/gated_delta/chunk_simd.h"

namespace stepwell::ops {

// How a pass over spans cuts its work: which heads share factors, and how many sequences are taken together.
template <class T>
class SpanWork {
 public:
  SpanWork(const GatedDeltaInputs<T>& in, const Segments& segments, std::int64_t chunk, bool backward)
      : in_(in), segments_(segments), HV_(in.v.extent[1]), H_(in.q.extent[1]) {
    const auto of_keys = [&](const View<const T, 3>& gate) { return !gate || gate.extent[1] == H_; };
    factor_heads_ = of_keys(in.g) && of_keys(in.b) ? H_ : HV_;
    const std::int64_t K = in.q.extent[2];
    const bool channel_decays = in.g && in.g.extent[2] > 1, own_erase = in.b && (channel_decays || in.b.extent[2] > 1);
    key_heads_ = own_erase && !of_keys(in.b) ? HV_ : H_;
    layout_ = {round_up_16(K), std::min(chunk, kSpan), static_cast<bool>(in.b), channel_decays, own_erase, backward};
  }

  // Sequences taken together: enough for every thread, few enough that scratch does not grow with the batch.
  std::int64_t wave() const { return std::max<std::int64_t>(1, kWaveHeads / HV_); }
  std::int64_t key_heads() const { return key_heads_; }
  std::int64_t factor_heads() const { return factor_heads_; }
  const FactorLayout& layout() const { return layout_; }
  std::int64_t spans(std::int64_t s) const { return (segments_.length(s) + kSpan - 1) / kSpan; }
  std::int64_t most_spans(std::int64_t first, std::int64_t count) const {
    std::int64_t most = 0;
    for (std::int64_t s = first; s < first + count; ++s) most = std::max(most, spans(s));
    return most;
  }
  std::int64_t first_token(std::int64_t s, std::int64_t span) const { return segments_.begin(s) + span * kSpan; }
  std::int64_t tokens(std::int64_t s, std::int64_t span) const {
    return std::min(kSpan, segments_.length(s) - span * kSpan);
  }
  // Buffers of the keys' and the heads' factors for `sequences` sequences.
  struct Buffers {
    T *keys, *heads;
  };
  Buffers allocate(Arena& scratch, std::int64_t sequences) const {
    return {scratch.allocate<T>(sequences * key_heads_ * layout_.key_size()),
            scratch.allocate<T>(sequences * factor_heads_ * layout_.head_size())};
  }
  // Those that value head j of the w-th sequence reads.
  Buffers of_head(const Buffers& all, std::int64_t w, std::int64_t j) const {
    return {all.keys + (w * key_heads_ + j / (HV_ / key_heads_)) * layout_.key_size(),
            all.heads + (w * factor_heads_ + j / (HV_ / factor_heads_)) * layout_.head_size()};
  }

  // Fills what comes from the keys of key head i for a span of sequence s, the w-th of a wave; then the rest for
  // factor head i.
  void prepare_keys(std::int64_t w, std::int64_t s, std::int64_t span, std::int64_t i, const Buffers& all,
                    Arena& scratch) const {
    each_chunk(w, s, span, i * (HV_ / key_heads_), all,
               [&](const auto& head, std::int64_t first, const auto& f) { chunk_keys(head, first, f, scratch); });
  }
  void prepare_heads(std::int64_t w, std::int64_t s, std::int64_t span, std::int64_t i, const Buffers& all,
                     Arena& scratch) const {
    each_chunk(w, s, span, i * (HV_ / factor_heads_), all,
               [&](const auto& head, std::int64_t first, const auto& f) { chunk_factors(head, first, f, scratch); });
  }

 private:
  template <class Body>
  void each_chunk(std::int64_t w, std::int64_t s, std::int64_t span, std::int64_t j, const Buffers& all,
                  Body body) const {
    const DeltaHead<T> head = delta_head(in_, first_token(s, span), j);
    const Buffers buffers = of_head(all, w, j);
    const std::int64_t n = tokens(s, span);
    for (std::int64_t c = 0; c < layout_.chunks(n); ++c) {
      body(head, c * layout_.chunk, layout_.at(buffers.keys, buffers.heads, c, n));
    }
  }

  static constexpr std::int64_t kWaveHeads = 16;
  const GatedDeltaInputs<T>& in_;
  const Segments& segments_;
  std::int64_t HV_, H_, key_heads_, factor_heads_;
  FactorLayout layout_;
};

// The chunked form of gated_delta (stepwell/ops/gated_delta.h), whatever form `options` name.
template <class T>
void gated_delta_chunked(Context& ctx, const GatedDeltaInputs<T>& in, const Segments& segments, View<T, 4> state,
                         View<T, 3> o, const GatedDeltaOptions<T>& options);

}  // namespace stepwell::ops
