// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/short_conv.h"

#include <algorithm>

#include "ops/short_conv/short_conv_simd.h"

namespace stepwell::ops {

namespace {

// A forward task: tokens × channels.
constexpr std::int64_t kTaskTokens = 64, kTaskChannels = 512;
// A backward task works through tiles of this many tokens.
constexpr std::int64_t kTileTokens = 32;
// Groups of sequences whose weight gradients are summed apart, then added in order.
constexpr std::int64_t kMostGroups = 8;

constexpr std::int64_t pieces(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }

// Input i of a sequence, a row of channels: a token, or for −K ≤ i < 0 a row of the incoming state.
template <class T>
const T* input_row(const View<const T, 2>& x, const View<const T, 3>& state, std::int64_t first, std::int64_t s,
                   std::int64_t i) {
  return i >= 0 ? x.row(first + i) : state.row(s) + (state.extent[1] + i) * state.stride[1];
}

// The outgoing window: the last K inputs.
template <class T>
void update_state(const View<const T, 2>& x, const Segments& segments, const View<T, 3>& state, std::int64_t s) {
  const std::int64_t K = state.extent[1], D = state.extent[2], length = segments.length(s);
  for (std::int64_t i = 0; i < K && length > 0; ++i) {
    // Rows move towards the front, so none is overwritten before it has moved.
    std::copy_n(input_row<T>(x, state, segments.begin(s), s, length - K + i), D, state.row(s) + i * state.stride[1]);
  }
}

}  // namespace

template <class T>
void short_conv(Context& ctx, const ShortConvInputs<T>& in, const Segments& segments, View<T, 3> state, View<T, 2> y) {
  const std::int64_t D = in.weight.extent[0], K = in.weight.extent[1];
  ArenaScope scope(ctx.scratch());
  T* weight = ctx.scratch().allocate<T>(K * D);
  ctx.parallel_for(1, [&](std::int64_t, Arena&) {
    for (std::int64_t d = 0; d < D; ++d) {
      for (std::int64_t j = 0; j < K; ++j) weight[j * D + d] = in.weight(d, j);
    }
  });
  // Tokens do not wait for one another: every sequence is cut into tasks along time too.
  std::int64_t longest = 0;
  for (std::int64_t s = 0; s < segments.count(); ++s) longest = std::max(longest, segments.length(s));
  const std::int64_t chunks = pieces(D, kTaskChannels), spans = pieces(longest, kTaskTokens);
  ctx.parallel_for(segments.count() * spans * chunks, [&](std::int64_t task, Arena& scratch) {
    const std::int64_t s = task / (spans * chunks), span = task / chunks % spans,
                       channel = task % chunks * kTaskChannels;
    const T** rows = scratch.allocate<const T*>(K);
    ConvRow<T> work{std::min(kTaskChannels, D - channel),
                    K,
                    rows,
                    weight + channel,
                    D,
                    in.bias ? in.bias + channel : nullptr,
                    in.activation,
                    nullptr};
    const std::int64_t last = std::min(segments.length(s), (span + 1) * kTaskTokens);
    for (std::int64_t t = span * kTaskTokens; t < last; ++t) {
      for (std::int64_t j = 0; j < K; ++j) {
        rows[j] = input_row<T>(in.x, state, segments.begin(s), s, t - (K - 1) + j) + channel;
      }
      work.y = y.row(segments.begin(s) + t) + channel;
      conv_row(work);
    }
  });
  ctx.parallel_for(segments.count(), [&](std::int64_t s, Arena&) { update_state(in.x, segments, state, s); });
}

namespace {

// The adjoint of one sequence for one block of channels, tile by tile from the end.
template <class T>
class SequenceBackward {
 public:
  SequenceBackward(const ShortConvInputs<T>& in, const Segments& segments, View<const T, 3> state,
                   View<const T, 2> grad_y, View<const T, 3> grad_state, const ShortConvGradients<T>& out,
                   std::int64_t channel, Arena& scratch)
      : in_(in),
        segments_(segments),
        state_(state),
        grad_y_(grad_y),
        grad_state_(grad_state),
        out_(out),
        K_(in.weight.extent[1]),
        channel_(channel),
        width_(std::min(kConvBlock, in.weight.extent[0] - channel)) {
    const auto zeros = [&](std::int64_t rows) {
      T* p = scratch.allocate<T>(rows * kConvBlock);
      std::fill_n(p, rows * kConvBlock, T(0));
      return p;
    };
    weight_ = zeros(K_);
    bias_ = zeros(1);
    x_ = zeros(K_ + kTileTokens);
    grad_ = zeros(kTileTokens + K_ - 1);
    grad_x_ = zeros(std::max(kTileTokens, K_));
    for (std::int64_t d = 0; d < width_; ++d) {
      for (std::int64_t j = 0; j < K_; ++j) weight_[j * kConvBlock + d] = in.weight(channel + d, j);
      if (in.bias) bias_[d] = in.bias[channel + d];
    }
  }

  // Adds to grad_weight [K, kConvBlock] and grad_bias [kConvBlock].
  void run(std::int64_t s, T* grad_weight, T* grad_bias) {
    const std::int64_t first = segments_.begin(s), length = segments_.length(s);
    std::fill_n(grad_, (kTileTokens + K_ - 1) * kConvBlock, T(0));
    for (std::int64_t tile = pieces(length, kTileTokens) - 1; tile >= 0; --tile) {
      const std::int64_t start = tile * kTileTokens, tokens = std::min(kTileTokens, length - start);
      // What the tile after this one left at the front belongs behind this one.
      std::copy_backward(grad_, grad_ + (K_ - 1) * kConvBlock, grad_ + (tokens + K_ - 1) * kConvBlock);
      for (std::int64_t i = 0; i < K_ + tokens; ++i) {
        copy_row(input_row<T>(in_.x, state_, first, s, start - K_ + i), x_ + i * kConvBlock);
      }
      for (std::int64_t t = 0; t < tokens; ++t) {
        copy_row(grad_y_.row(first + start + t), grad_ + t * kConvBlock);
        start_gradient(s, start + t, length, grad_x_ + t * kConvBlock);
      }
      conv_tile_backward(
          ConvTile<T>{tokens, K_, weight_, bias_, in_.activation, x_, grad_, grad_x_, grad_weight, grad_bias});
      for (std::int64_t t = 0; t < tokens && out_.x; ++t) {
        std::copy_n(grad_x_ + t * kConvBlock, width_, out_.x.row(first + start + t) + channel_);
      }
    }
    if (out_.state) write_state(s, length);
  }

 private:
  void copy_row(const T* row, T* to) const { std::copy_n(row + channel_, width_, to); }

  // The gradient of input i (−K ≤ i < length) as part of the outgoing window.
  void start_gradient(std::int64_t s, std::int64_t i, std::int64_t length, T* to) const {
    const std::int64_t row = i - (length - K_);
    if (row >= 0 && grad_state_) {
      copy_row(grad_state_.row(s) + row * grad_state_.stride[1], to);
    } else {
      std::fill_n(to, kConvBlock, T(0));
    }
  }

  // Gradients of the inputs before the first token, of which grad_ holds the sums' gradients that they reach.
  void write_state(std::int64_t s, std::int64_t length) {
    for (std::int64_t i = -K_; i < 0; ++i) {
      T* sum = grad_x_;
      start_gradient(s, i, length, sum);
      for (std::int64_t j = 0; j < K_; ++j) {
        const std::int64_t t = i + K_ - 1 - j;
        if (t < 0 || t >= length) continue;
        for (std::int64_t d = 0; d < width_; ++d) sum[d] += weight_[j * kConvBlock + d] * grad_[t * kConvBlock + d];
      }
      std::copy_n(sum, width_, out_.state.row(s) + (K_ + i) * out_.state.stride[1] + channel_);
    }
  }

  const ShortConvInputs<T>& in_;
  const Segments& segments_;
  View<const T, 3> state_;
  View<const T, 2> grad_y_;
  View<const T, 3> grad_state_;
  const ShortConvGradients<T>& out_;
  std::int64_t K_, channel_, width_;
  T *weight_, *bias_, *x_, *grad_, *grad_x_;
};

}  // namespace

template <class T>
void short_conv_backward(Context& ctx, const ShortConvInputs<T>& in, const Segments& segments, View<const T, 3> state,
                         View<const T, 2> grad_y, View<const T, 3> grad_state, const ShortConvGradients<T>& out) {
  const std::int64_t D = in.weight.extent[0], K = in.weight.extent[1], S = segments.count();
  const std::int64_t blocks = pieces(D, kConvBlock), groups = std::min(S, kMostGroups), size = (K + 1) * kConvBlock;
  ArenaScope scope(ctx.scratch());
  T* sums = ctx.scratch().allocate<T>(groups * blocks * size);
  ctx.parallel_for(groups * blocks, [&](std::int64_t task, Arena& scratch) {
    const std::int64_t group = task / blocks, block = task % blocks;
    T* sum = sums + task * size;
    std::fill_n(sum, size, T(0));
    SequenceBackward<T> backward(in, segments, state, grad_y, grad_state, out, block * kConvBlock, scratch);
    for (std::int64_t s = group * S / groups; s < (group + 1) * S / groups; ++s)
      backward.run(s, sum, sum + K * kConvBlock);
  });
  ctx.parallel_for(blocks, [&](std::int64_t block, Arena&) {
    for (std::int64_t d = 0; d < std::min(kConvBlock, D - block * kConvBlock); ++d) {
      for (std::int64_t j = 0; j <= K; ++j) {
        T total = 0;
        for (std::int64_t group = 0; group < groups; ++group)
          total += sums[(group * blocks + block) * size + j * kConvBlock + d];
        if (j < K && out.weight) out.weight(block * kConvBlock + d, j) = total;
        if (j == K && out.bias) out.bias[block * kConvBlock + d] = total;
      }
    }
  });
}

template void short_conv(Context&, const ShortConvInputs<float>&, const Segments&, View<float, 3>, View<float, 2>);
template void short_conv(Context&, const ShortConvInputs<double>&, const Segments&, View<double, 3>, View<double, 2>);
template void short_conv_backward(Context&, const ShortConvInputs<float>&, const Segments&, View<const float, 3>,
                                  View<const float, 2>, View<const float, 3>, const ShortConvGradients<float>&);
template void short_conv_backward(Context&, const ShortConvInputs<double>&, const Segments&, View<const double, 3>,
                                  View<const double, 2>, View<const double, 3>, const ShortConvGradients<double>&);

}  // namespace stepwell::ops
