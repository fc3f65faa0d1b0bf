// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The kernels under matmul: packing, and the product of one block of rows, columns and depth.
namespace stepwell::ops {

inline constexpr std::int64_t kPanel = 16;   // columns of a packed panel
inline constexpr std::int64_t kDepth = 256;  // k is cut at multiples of this

// One block of a matrix product: out[m,n] = Σ_k a[m,k] b[k,n] over at most kDepth values of k, finished as asked.
//
// Shapes  a[m,k] at a[m·a_row + k·a_step]; b[k,n] at b[(n/16)·b_panel + k·b_step + n%16], where whole panels of 16 are
//         readable; bias [columns]; partial, old, out [rows, columns] with contiguous columns. out may be partial or
//         old.
// Range   rows, columns ≥ 1; 0 ≤ depth ≤ kDepth.
// Order   chain of fma from 0 in increasing k; then partial + chain; then + bias; then old + that.
template <class T>
struct BlockProduct {
  std::int64_t rows, columns, depth;
  const T* a;
  std::int64_t a_row, a_step;
  const T* b;
  std::int64_t b_panel, b_step;
  const T* partial;  // sums of the blocks before this one, or nullptr
  std::int64_t partial_row;
  const T* bias;  // or nullptr
  const T* old;   // values to add to, or nullptr
  T* out;
  std::int64_t out_row;  // of old too
};
void multiply_block(const BlockProduct<float>& p);
void multiply_block(const BlockProduct<double>& p);

// Packs b[k,n] = source[k·k_stride + n·n_stride], k < K, n < N, into panels: [ceil(N/16)] of [K][16], `panel` elements
// apart, missing columns of the last one 0.
void pack_panels(const float* source, std::int64_t k_stride, std::int64_t n_stride, std::int64_t K, std::int64_t N,
                 float* panels, std::int64_t panel);
void pack_panels(const double* source, std::int64_t k_stride, std::int64_t n_stride, std::int64_t K, std::int64_t N,
                 double* panels, std::int64_t panel);

}  // namespace stepwell::ops
