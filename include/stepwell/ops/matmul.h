// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/core/context.h"
#include "stepwell/core/tensor.h"
#include "stepwell/core/view.h"

namespace stepwell::ops {

// Which operand is transposed.
enum class Product {
  AB,   // c[m,n] = Σ_k a[m,k] b[k,n]
  ABt,  // c[m,n] = Σ_k a[m,k] b[n,k]   a linear layer: b is weight [out, in]
  AtB,  // c[m,n] = Σ_k a[k,m] b[k,n]   a weight gradient: k runs over tokens
};

// A matrix packed for products: panels of 16 output columns, [N/16][K][16], the last panel padded with zeros.
// Immutable; shared by threads. float or double inside.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  // Packs the right operand of `product` (AB: b [K,N]; ABt: b [N,K]).
  template <class T>
  static PackedMatrix pack(Context& ctx, Product product, View<const T, 2> b);

  bool defined() const { return panels_.defined(); }
  std::int64_t in() const { return k_; }            // K
  std::int64_t out() const { return n_; }           // N
  const Tensor& panels() const { return panels_; }  // [ceil(N/16), K, 16]

 private:
  Tensor panels_;
  std::int64_t k_ = 0, n_ = 0;
};

template <class T>
struct MatmulOptions {
  const T* bias = nullptr;  // [N], added to the finished sum
  bool accumulate = false;  // c += product instead of c = product
};

// Matrix product, rows and columns of any stride.
//
// Range   M, N, K ≥ 0; K = 0 gives bias (or 0).
// Order   k is cut at multiples of 256; inside a block each output element is one chain of fused multiply-adds from 0
//         in increasing k; block sums are added in increasing order; then the bias; then (accumulate) old c + sum. The
//         order depends on nothing else: one row alone and the same row among thousands have the same bits (X1), on
//         every instruction set with FMA (X7).
template <class T>
void matmul(Context& ctx, Product product, View<const T, 2> a, View<const T, 2> b, View<T, 2> c,
            MatmulOptions<T> options = {});

// The same with b packed beforehand: the same bits.
template <class T>
void matmul(Context& ctx, View<const T, 2> a, const PackedMatrix& b, View<T, 2> c, MatmulOptions<T> options = {});

}  // namespace stepwell::ops
