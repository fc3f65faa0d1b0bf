// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The kernels under matmul: packing, and the product of one block of rows, columns and depth.
namespace stepwell::ops {

inline constexpr std::int64_t kPanel = 16;                              // columns of a packed panel
inline constexpr std::int64_t kChain = 256;                             // k is cut at multiples of this
inline constexpr std::int64_t kMostShortRows = 12, kMostTallRows = 24;  // of a tile, a in place and packed

// A right operand b[k,n]. Loose: at data[k·k_stride + n·n_stride]. Packed (panel > 0): at
// data[(n/16)·panel + k·16 + n%16].
template <class T>
struct RightOperand {
  const T* data = nullptr;
  std::int64_t k_stride = 0, n_stride = 0, panel = 0;

  // The same from (k, n) on; n a multiple of 16 if packed.
  RightOperand at(std::int64_t k, std::int64_t n) const {
    RightOperand part = *this;
    part.data += panel ? n / kPanel * panel + k * kPanel : k * k_stride + n * n_stride;
    return part;
  }
};

// One block of a matrix product: out[m,n] = Σ_k a[m,k] b[k,n] over some values of k, finished as asked.
//
// Shapes  a[m,k] at a[m·a_row + k·a_step]; bias [columns]; partial, old, out [rows, columns] with contiguous columns.
//         out may be partial or old.
// Range   rows, columns ≥ 1; depth ≥ 0; any strides.
// Order   chains of fma from 0 in increasing k, of kChain each, added in order; then partial + that; then + bias; then
//         old + that.
template <class T>
struct BlockProduct {
  std::int64_t rows = 0, columns = 0, depth = 0;
  const T* a = nullptr;
  std::int64_t a_row = 0, a_step = 0;
  T* a_panel = nullptr;  // scratch [depth, kMostTallRows] if rows of a are to be packed; rows > kMostShortRows then
  RightOperand<T> b;
  T* panels = nullptr;         // scratch [ceil(columns/16), depth, 16] if b is loose
  bool in_place = false;       // b is loose, its rows are contiguous and all tiles are to read it where it is
  const T* partial = nullptr;  // sums of the blocks before this one
  std::int64_t partial_row = 0;
  const T* bias = nullptr;
  const T* old = nullptr;  // what to add to
  T* out = nullptr;
  std::int64_t out_row = 0;  // of old too
};
void multiply_block(const BlockProduct<float>& p);
void multiply_block(const BlockProduct<double>& p);

// Packs k < K, n < N of a loose operand into panels [ceil(N/16)] of [K][16], `panel` elements apart; missing columns of
// the last one are 0.
void pack_panels(const RightOperand<float>& b, std::int64_t K, std::int64_t N, float* panels, std::int64_t panel);
void pack_panels(const RightOperand<double>& b, std::int64_t K, std::int64_t N, double* panels, std::int64_t panel);

// Packs rows m < M of a side by side: out[k·step + m] = a[m·a_row + k·a_step] for k < K.
void pack_rows(const float* a, std::int64_t a_row, std::int64_t a_step, std::int64_t M, std::int64_t K, float* out,
               std::int64_t step);
void pack_rows(const double* a, std::int64_t a_row, std::int64_t a_step, std::int64_t M, std::int64_t K, double* out,
               std::int64_t step);

}  // namespace stepwell::ops
