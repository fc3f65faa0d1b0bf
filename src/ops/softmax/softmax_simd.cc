// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/softmax/softmax_simd.cc"
#include "ops/softmax/softmax_simd.h"

#include <algorithm>
#include <limits>

#include "hwy/foreach_target.h"

#include "simd/log-inl.h"
#include "simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

using Index = std::int64_t;

// The largest entry, NaNs passed over; −inf for none. Exact, so its order does not matter.
template <class T>
HWY_INLINE T largest(const T* x, Index n) {
  Vec<T> m = set<T>(-std::numeric_limits<T>::infinity());
  for_vectors<T>(n, [&](Index i, Index lanes) HWY_ATTR {
    const Vec<T> v = load_part(x + i, lanes);
    const auto larger = hn::And(hn::Lt(m, v), hn::FirstN(Tag<T>(), static_cast<std::size_t>(lanes)));
    m = hn::IfThenElse(larger, v, m);
  });
  HWY_ALIGN T lane[kWidth<T>];
  hn::Store(m, Tag<T>(), lane);
  return *std::max_element(lane, lane + kWidth<T>);
}

template <class T>
void softmax_rows_t(const T* x, Index rows, Index width, T* y) {
  for (Index r = 0; r < rows; ++r, x += width, y += width) {
    const Vec<T> m = set<T>(largest(x, width));
    for_vectors<T>(width, [&](Index i, Index lanes) HWY_ATTR {
      store_part<T>(exp_bounded(hn::Sub(load_part(x + i, lanes), m)), y + i, lanes);
    });
    const Vec<T> sum = set<T>(sum16(y, width));
    for_vectors<T>(width, [&](Index i, Index lanes)
                              HWY_ATTR { store_part<T>(hn::Div(load_part(y + i, lanes), sum), y + i, lanes); });
  }
}

template <class T>
void softmax_backward_rows_t(const T* y, const T* grad_y, Index rows, Index width, T* grad_x) {
  for (Index r = 0; r < rows; ++r, y += width, grad_y += width, grad_x += width) {
    const Vec<T> mean = set<T>(dot16(grad_y, y, width));
    for_vectors<T>(width, [&](Index i, Index lanes) HWY_ATTR {
      const Vec<T> g = hn::Sub(load_part(grad_y + i, lanes), mean);
      store_part<T>(hn::Mul(load_part(y + i, lanes), g), grad_x + i, lanes);
    });
  }
}

template <class T>
void cross_entropy_row_t(const T* x, Index width, Index target, T* log_sum, T* loss) {
  const T m = largest(x, width);
  const T sum = reduce16<T>(width, [x, m](Vec<T> s, Index i, Index lanes) HWY_ATTR {
    return hn::Add(s, keep_part<T>(exp_bounded(hn::Sub(load_part(x + i, lanes), set<T>(m))), lanes));
  });
  const T log_of_sum = hn::GetLane(log(set<T>(sum)));
  *log_sum = m + log_of_sum;
  *loss = log_of_sum + (m - x[target]);
}

template <class T>
void cross_entropy_backward_row_t(const T* x, Index width, Index target, T log_sum, T factor, T* grad_x) {
  const T at_target = hn::GetLane(expm1(set<T>(x[target] - log_sum))) * factor;  // p − 1 without cancellation
  for_vectors<T>(width, [&](Index i, Index lanes) HWY_ATTR {
    const Vec<T> p = exp_bounded(hn::Sub(load_part(x + i, lanes), set<T>(log_sum)));
    store_part<T>(hn::Mul(p, set<T>(factor)), grad_x + i, lanes);
  });
  grad_x[target] = at_target;
}

void softmax_rows_f32(const float* x, std::int64_t rows, std::int64_t width, float* y) {
  softmax_rows_t(x, rows, width, y);
}
void softmax_rows_f64(const double* x, std::int64_t rows, std::int64_t width, double* y) {
  softmax_rows_t(x, rows, width, y);
}
void softmax_backward_rows_f32(const float* y, const float* grad_y, std::int64_t rows, std::int64_t width,
                               float* grad_x) {
  softmax_backward_rows_t(y, grad_y, rows, width, grad_x);
}
void softmax_backward_rows_f64(const double* y, const double* grad_y, std::int64_t rows, std::int64_t width,
                               double* grad_x) {
  softmax_backward_rows_t(y, grad_y, rows, width, grad_x);
}
void cross_entropy_row_f32(const float* x, std::int64_t width, std::int64_t target, float* log_sum, float* loss) {
  cross_entropy_row_t(x, width, target, log_sum, loss);
}
void cross_entropy_row_f64(const double* x, std::int64_t width, std::int64_t target, double* log_sum, double* loss) {
  cross_entropy_row_t(x, width, target, log_sum, loss);
}
void cross_entropy_backward_row_f32(const float* x, std::int64_t width, std::int64_t target, float log_sum,
                                    float factor, float* grad_x) {
  cross_entropy_backward_row_t(x, width, target, log_sum, factor, grad_x);
}
void cross_entropy_backward_row_f64(const double* x, std::int64_t width, std::int64_t target, double log_sum,
                                    double factor, double* grad_x) {
  cross_entropy_backward_row_t(x, width, target, log_sum, factor, grad_x);
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(softmax_rows_f32);
HWY_EXPORT(softmax_rows_f64);
HWY_EXPORT(softmax_backward_rows_f32);
HWY_EXPORT(softmax_backward_rows_f64);
HWY_EXPORT(cross_entropy_row_f32);
HWY_EXPORT(cross_entropy_row_f64);
HWY_EXPORT(cross_entropy_backward_row_f32);
HWY_EXPORT(cross_entropy_backward_row_f64);

void softmax_rows(const float* x, std::int64_t rows, std::int64_t width, float* y) {
  HWY_DYNAMIC_DISPATCH(softmax_rows_f32)(x, rows, width, y);
}
void softmax_rows(const double* x, std::int64_t rows, std::int64_t width, double* y) {
  HWY_DYNAMIC_DISPATCH(softmax_rows_f64)(x, rows, width, y);
}
void softmax_backward_rows(const float* y, const float* grad_y, std::int64_t rows, std::int64_t width, float* grad_x) {
  HWY_DYNAMIC_DISPATCH(softmax_backward_rows_f32)(y, grad_y, rows, width, grad_x);
}
void softmax_backward_rows(const double* y, const double* grad_y, std::int64_t rows, std::int64_t width,
                           double* grad_x) {
  HWY_DYNAMIC_DISPATCH(softmax_backward_rows_f64)(y, grad_y, rows, width, grad_x);
}
void cross_entropy_row(const float* x, std::int64_t width, std::int64_t target, float* log_sum, float* loss) {
  HWY_DYNAMIC_DISPATCH(cross_entropy_row_f32)(x, width, target, log_sum, loss);
}
void cross_entropy_row(const double* x, std::int64_t width, std::int64_t target, double* log_sum, double* loss) {
  HWY_DYNAMIC_DISPATCH(cross_entropy_row_f64)(x, width, target, log_sum, loss);
}
void cross_entropy_backward_row(const float* x, std::int64_t width, std::int64_t target, float log_sum, float factor,
                                float* grad_x) {
  HWY_DYNAMIC_DISPATCH(cross_entropy_backward_row_f32)(x, width, target, log_sum, factor, grad_x);
}
void cross_entropy_backward_row(const double* x, std::int64_t width, std::int64_t target, double log_sum, double factor,
                                double* grad_x) {
  HWY_DYNAMIC_DISPATCH(cross_entropy_backward_row_f64)(x, width, target, log_sum, factor, grad_x);
}

}  // namespace stepwell::ops
#endif
