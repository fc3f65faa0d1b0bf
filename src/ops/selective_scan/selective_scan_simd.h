// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/selective_scan/scan_block.h"

namespace stepwell::ops {

// Tokens that scan_forward takes at most: their steps, inputs and gates stay in the first-level cache beside the state,
// and the pages that their rows lie on in its translation buffer.
inline constexpr std::int64_t kTile = 16;

// Runs at most kTile tokens of a block from state h [N, kBlock], in/out, and writes y where wanted.
//
// Cost    per token, channel and state 13 operations, of which 6 make the decay.
// Order   tokens in order; y is one chain of fused multiply-adds over n from 0; lanes are channels.
template <class T>
struct ScanForward {
  ScanBlock<T> in;
  std::int64_t tokens;
  T* h;
  ScanRows<T> y;
  NextRows<T> next;
};
void scan_forward(const ScanForward<float>& work, Arena& scratch);
void scan_forward(const ScanForward<double>& work, Arena& scratch);

// The adjoint of at most kSpan tokens of a block whose state before the first is h [N, kBlock].
template <class T>
struct ScanBackward {
  ScanBlock<T> in;
  std::int64_t tokens;
  const T* h;
  const T* grad_y;
  std::int64_t grad_y_stride;
  ScanRows<T> u, dt, z;  // gradients of the tokens, written
  T* lam;                // [N, kBlock] gradient of the state after the span → of the state before it
  // Added to: [N, kBlock], [kBlock], [kBlock].
  T *A, *dt_bias, *skip;
  // Added to: [tokens, N, 16], lane j the sum over channels j, j+16, …; with constant B and C [N, kBlock].
  T *B, *C;
  NextRows<T> next, next_out;  // of inputs and outputs
};
void scan_backward(const ScanBackward<float>& work, Arena& scratch);
void scan_backward(const ScanBackward<double>& work, Arena& scratch);

// sums[i] = the 16 lanes of row i, folded 8, 4, 2, 1 as everywhere (simd/reduce-inl.h).
void fold_rows(const float* lanes, std::int64_t rows, float* sums);
void fold_rows(const double* lanes, std::int64_t rows, double* sums);

}  // namespace stepwell::ops
