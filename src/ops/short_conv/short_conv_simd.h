// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/ops/short_conv.h"

namespace stepwell::ops {

// One output row of `width` channels: y = activation(bias + Σ_j weight[j]·rows[j]), a chain of fused multiply-adds
// from the bias over j = 0 … K−1. `weight` [K] rows of channels, weight_stride apart; bias null: 0.
template <class T>
struct ConvRow {
  std::int64_t width, K;
  const T* const* rows;
  const T* weight;
  std::int64_t weight_stride;
  const T* bias;
  Activation activation;
  T* y;
};
void conv_row(const ConvRow<float>& work);
void conv_row(const ConvRow<double>& work);

// Channels of a block of the backward pass; its local arrays have rows of this many, zeros beyond `width`.
inline constexpr std::int64_t kConvBlock = 64;

// A tile of the adjoint.
template <class T>
struct ConvTile {
  std::int64_t tokens, K;
  const T* weight;  // [K, kConvBlock]
  const T* bias;    // [kConvBlock]
  Activation activation;
  const T* x;  // [K + tokens, kConvBlock] inputs, the tile's own from row K on
  T* grad;     // [tokens + K − 1, kConvBlock] in: gradients of the tile's outputs, then those of the sums of the K − 1
               // tokens after it; out: the tile's replaced by those of its sums
  T* grad_x;   // [tokens, kConvBlock] added to
  T* grad_weight;  // [K, kConvBlock] added to
  T* grad_bias;    // [kConvBlock] added to
};
void conv_tile_backward(const ConvTile<float>& work);
void conv_tile_backward(const ConvTile<double>& work);

}  // namespace stepwell::ops
