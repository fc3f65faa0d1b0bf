// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/pooled_attention/pooled_attention_simd.cc"
#include "ops/pooled_attention/pooled_attention_simd.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hwy/foreach_target.h"

#include "ops/column_block/tile_product-inl.h"
#include "simd/exp-inl.h"
#include "simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using Index = std::int64_t;

// y += a·x.
template <class T>
HWY_INLINE void add_scaled(const T* x, T a, Index n, T* y) {
  const Vec<T> factor = set(a);
  for_vectors<T>(n, [&](Index i, Index lanes) HWY_ATTR {
    store_part<T>(fma(factor, load_part(x + i, lanes), load_part(y + i, lanes)), y + i, lanes);
  });
}

// y += x.
template <class T>
HWY_INLINE void add_to(const T* x, Index n, T* y) {
  for_vectors<T>(n, [&](Index i, Index lanes) HWY_ATTR {
    store_part<T>(hn::Add(load_part(x + i, lanes), load_part(y + i, lanes)), y + i, lanes);
  });
}

// The largest entry, exact in any order.
template <class T>
HWY_INLINE T largest_of(const T* x, Index n) {
  T most = -std::numeric_limits<T>::infinity();
  HWY_ALIGN T lane[kWidth<T>];
  Vec<T> m = set(most);
  Index i = 0;
  for (; i + kWidth<T> <= n; i += kWidth<T>) m = hn::Max(m, load(x + i));
  hn::Store(m, Tag<T>(), lane);
  for (const T candidate : lane) most = std::max(most, candidate);
  for (; i < n; ++i) most = std::max(most, x[i]);
  return most;
}

// One head of one window: rows of its part of q, k, v with what belongs to their age, padded to multiples of 16, and
// from them the attention P and the share of every row in the pooled sum.
template <class T>
class Head {
 public:
  Head(const AttentionWindow<T>& window, Index head) : window_(window) {
    length_ = window.length;
    width_ = window.width / window.heads;
    first_ = head * width_;
    rows_ = (length_ + 15) / 16 * 16;
    columns_ = (width_ + 15) / 16 * 16;
    T* at = window.scratch;
    const auto take = [&at](Index n) {
      T* part = at;
      at += n;
      return part;
    };
    q = take(rows_ * columns_);
    k = take(rows_ * columns_);
    v = take(rows_ * columns_);
    grad_q = take(rows_ * columns_);
    grad_k = take(rows_ * columns_);
    transposed_ = take(rows_ * columns_);
    scores = take(rows_ * rows_);
    alpha = take(rows_);
    share = take(rows_);
    grad_share = take(rows_);
  }

  // P into `scores`, Σ_i a_i P_ij into `share`.
  void attend() {
    weigh();
    gather(window_.q, window_.age_q, q);
    gather(window_.k, window_.age_k, k);
    gather(window_.v, window_.age_v, v);
    for (Index i = 0; i < rows_; i += 16) {
      for (Index j = 0; j < columns_; j += 16) {
        transpose_block(k + i * columns_ + j, columns_, transposed_ + j * rows_ + i, rows_);
      }
    }
    TileProduct<T> product{};
    product.a = q;
    product.a_row = columns_;
    product.a_step = 1;
    product.b = transposed_;
    product.b_step = rows_;
    product.depth = width_;
    product.out = scores;
    product.out_row = rows_;
    tile_product(product, length_, rows_);
    std::fill_n(share, rows_, T(0));
    const T scale = T(1) / std::sqrt(static_cast<T>(width_));
    for (Index i = 0; i < length_; ++i) {
      T* row = scores + i * rows_;
      soften(row, scale);
      add_scaled(row, alpha[i], length_, share);
    }
  }

  // The gradient of the scores, in their place, from that of z's part: a_i P_ij (g_j − Σ_j P_ij g_j) / sqrt(width),
  // where g_j = v_j·grad_z.
  void score_gradients(const T* grad_z) {
    std::fill_n(grad_share, rows_, T(0));
    for (Index j = 0; j < length_; ++j) grad_share[j] = dot16(v + j * columns_, grad_z + first_, width_);
    const T scale = T(1) / std::sqrt(static_cast<T>(width_));
    for (Index i = 0; i < length_; ++i) {
      T* row = scores + i * rows_;
      const Vec<T> mean = set(dot16(row, grad_share, length_)), factor = set(alpha[i] * scale);
      for_vectors<T>(length_, [&](Index j, Index lanes) HWY_ATTR {
        const Vec<T> g = hn::Sub(load_part(grad_share + j, lanes), mean);
        store_part<T>(hn::Mul(hn::Mul(factor, load_part(row + j, lanes)), g), row + j, lanes);
      });
    }
  }

  // grad_q = G k and grad_k = Gᵀ q for the gradient G of the scores.
  void key_query_gradients() {
    TileProduct<T> product{};
    product.a = scores;
    product.a_row = rows_;
    product.a_step = 1;
    product.b = k;
    product.b_step = columns_;
    product.depth = length_;
    product.out = grad_q;
    product.out_row = columns_;
    tile_product(product, length_, columns_);
    product.a_row = 1;
    product.a_step = rows_;
    product.b = q;
    product.out = grad_k;
    tile_product(product, length_, columns_);
  }

  // Adds rows [length][columns] to this head's columns of rows and, by age, of a table (or null).
  void scatter(const T* from, T* rows, T* by_age) const {
    for (Index i = 0; i < length_; ++i) {
      add_to(from + i * columns_, width_, rows + i * window_.width + first_);
      if (by_age) add_to(from + i * columns_, width_, by_age + (length_ - 1 - i) * window_.width + first_);
    }
  }

  Index first() const { return first_; }
  Index width() const { return width_; }
  Index columns() const { return columns_; }

  T *q, *k, *v, *grad_q, *grad_k;  // [rows][columns]
  T* scores;                       // [rows][rows]
  T *alpha, *share, *grad_share;   // [rows]

 private:
  void weigh() {
    if (!window_.weight) {
      std::fill_n(alpha, length_, T(1) / static_cast<T>(length_));
      return;
    }
    const Vec<T> sum = set(sum16(window_.weight, length_));
    HWY_ALIGN T reversed[kWidth<T>];
    for (Index i = 0; i < length_; i += kWidth<T>) {
      const Index lanes = std::min<Index>(kWidth<T>, length_ - i);
      for (Index j = 0; j < lanes; ++j) reversed[j] = window_.weight[length_ - 1 - i - j];
      store_part<T>(hn::Div(load_part(reversed, lanes), sum), alpha + i, lanes);
    }
  }

  // Softmax of scale·row.
  void soften(T* row, T scale) const {
    const Vec<T> most = set(largest_of(row, length_)), factor = set(scale);
    for_vectors<T>(length_, [&](Index j, Index lanes) HWY_ATTR {
      store_part<T>(exp_bounded(hn::Mul(factor, hn::Sub(load_part(row + j, lanes), most))), row + j, lanes);
    });
    const Vec<T> sum = set(sum16(row, length_));
    for_vectors<T>(length_, [&](Index j, Index lanes)
                                HWY_ATTR { store_part<T>(hn::Div(load_part(row + j, lanes), sum), row + j, lanes); });
  }

  // This head's part of the window's rows, plus that of the table by age; padded with zeros.
  void gather(const T* rows, const T* by_age, T* to) const {
    std::fill_n(to, rows_ * columns_, T(0));
    for (Index i = 0; i < length_; ++i) {
      T* row = to + i * columns_;
      std::copy_n(rows + i * window_.width + first_, width_, row);
      if (by_age) add_to(by_age + (length_ - 1 - i) * window_.width + first_, width_, row);
    }
  }

  const AttentionWindow<T>& window_;
  Index length_, width_, first_, rows_, columns_;
  T* transposed_;
};

template <class T>
void pool_window_t(const AttentionWindow<T>& window, T* z) {
  std::fill_n(z, window.width, T(0));
  for (Index h = 0; h < window.heads; ++h) {
    Head<T> head(window, h);
    head.attend();
    T* part = z + head.first();
    for (Index i = 0; i < window.length; ++i) {
      add_scaled(window.e + i * window.width + head.first(), head.alpha[i], head.width(), part);
      if (window.age_e) {
        add_scaled(window.age_e + (window.length - 1 - i) * window.width + head.first(), head.alpha[i], head.width(),
                   part);
      }
      add_scaled(head.v + i * head.columns(), head.share[i], head.width(), part);
    }
  }
}

template <class T>
void pool_window_backward_t(const AttentionWindow<T>& window, const T* grad_z, const AttentionWindowGradients<T>& out) {
  for (Index h = 0; h < window.heads; ++h) {
    Head<T> head(window, h);
    head.attend();
    const T* part = grad_z + head.first();
    for (Index i = 0; i < window.length; ++i) {
      const Index at = i * window.width + head.first();
      add_scaled(part, head.alpha[i], head.width(), out.e + at);
      add_scaled(part, head.share[i], head.width(), out.v + at);
      if (out.age_v) {
        add_scaled(part, head.share[i], head.width(),
                   out.age_v + (window.length - 1 - i) * window.width + head.first());
      }
    }
    head.score_gradients(grad_z);
    head.key_query_gradients();
    head.scatter(head.grad_q, out.q, out.age_q);
    head.scatter(head.grad_k, out.k, out.age_k);
  }
}

void pool_window_f32(const AttentionWindow<float>& window, float* z) { pool_window_t(window, z); }
void pool_window_f64(const AttentionWindow<double>& window, double* z) { pool_window_t(window, z); }
void pool_window_backward_f32(const AttentionWindow<float>& window, const float* grad_z,
                              const AttentionWindowGradients<float>& out) {
  pool_window_backward_t(window, grad_z, out);
}
void pool_window_backward_f64(const AttentionWindow<double>& window, const double* grad_z,
                              const AttentionWindowGradients<double>& out) {
  pool_window_backward_t(window, grad_z, out);
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(pool_window_f32);
HWY_EXPORT(pool_window_f64);
HWY_EXPORT(pool_window_backward_f32);
HWY_EXPORT(pool_window_backward_f64);

void pool_window(const AttentionWindow<float>& window, float* z) { HWY_DYNAMIC_DISPATCH(pool_window_f32)(window, z); }
void pool_window(const AttentionWindow<double>& window, double* z) { HWY_DYNAMIC_DISPATCH(pool_window_f64)(window, z); }
void pool_window_backward(const AttentionWindow<float>& window, const float* grad_z,
                          const AttentionWindowGradients<float>& out) {
  HWY_DYNAMIC_DISPATCH(pool_window_backward_f32)(window, grad_z, out);
}
void pool_window_backward(const AttentionWindow<double>& window, const double* grad_z,
                          const AttentionWindowGradients<double>& out) {
  HWY_DYNAMIC_DISPATCH(pool_window_backward_f64)(window, grad_z, out);
}

}  // namespace stepwell::ops
#endif
