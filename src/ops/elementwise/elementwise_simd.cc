// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/elementwise_simd.cc"
#include "ops/elementwise/elementwise_simd.h"

#include "hwy/foreach_target.h"

#include "simd/math-inl.h"
#include "simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

// y[i] = f(x[i]); z[i] = f(x[i], y[i]).
template <class T, class F>
void map(const T* x, T* y, std::int64_t n, F f) {
  for_vectors<T>(
      n, [&](std::int64_t i, std::int64_t lanes) HWY_ATTR { store_part<T>(f(load_part(x + i, lanes)), y + i, lanes); });
}
template <class T, class F>
void zip(const T* x, const T* y, T* z, std::int64_t n, F f) {
  for_vectors<T>(n, [&](std::int64_t i, std::int64_t lanes)
                        HWY_ATTR { store_part<T>(f(load_part(x + i, lanes), load_part(y + i, lanes)), z + i, lanes); });
}

template <class T>
void unary_t(Unary op, const T* x, T* y, std::int64_t n) {
  switch (op) {
    case Unary::Exp: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return exp(v); });
    case Unary::Expm1: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return expm1(v); });
    case Unary::DecayRate: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return decay_rate(v); });
    case Unary::Log: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return log(v); });
    case Unary::Log1p: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return log1p(v); });
    case Unary::Tanh: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return tanh(v); });
    case Unary::Sigmoid: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return sigmoid(v); });
    case Unary::LogSigmoid: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return log_sigmoid(v); });
    case Unary::Silu: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return silu(v); });
    case Unary::Softplus: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return softplus(v); });
    case Unary::Relu: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return at_least(v, 0); });
    case Unary::EluPlusOne: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return elu_plus_one(v); });
    case Unary::GeluTanh: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return gelu_tanh(v); });
    case Unary::GeluErf: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return gelu_erf(v); });
    case Unary::Erf: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return erf(v); });
    case Unary::Sin: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return sin(v); });
    case Unary::Cos: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return cos(v); });
  }
}

template <class T>
void unary_backward_t(Unary op, const T* x, const T* grad_y, T* grad_x, std::int64_t n) {
  switch (op) {
    case Unary::Exp:
      return zip<T>(x, grad_y, grad_x, n, [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, exp(v)); });
    case Unary::Expm1:
      return zip<T>(x, grad_y, grad_x, n, [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, exp(v)); });
    case Unary::DecayRate:
      return zip<T>(x, grad_y, grad_x, n, [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, decay_rate(v)); });
    case Unary::Log:
      return zip<T>(x, grad_y, grad_x, n,
                    [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, hn::Div(set<T>(1), v)); });
    case Unary::Log1p:
      return zip<T>(x, grad_y, grad_x, n,
                    [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, hn::Div(set<T>(1), hn::Add(set<T>(1), v))); });
    case Unary::Tanh:
      return zip<T>(x, grad_y, grad_x, n, [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, tanh_derivative(v)); });
    case Unary::Sigmoid:
      return zip<T>(x, grad_y, grad_x, n,
                    [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, sigmoid_derivative(v)); });
    case Unary::LogSigmoid:
      return zip<T>(x, grad_y, grad_x, n,
                    [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, log_sigmoid_derivative(v)); });
    case Unary::Silu:
      return zip<T>(x, grad_y, grad_x, n, [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, silu_derivative(v)); });
    case Unary::Softplus:
      return zip<T>(x, grad_y, grad_x, n,
                    [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, softplus_derivative(v)); });
    case Unary::Relu:
      return zip<T>(x, grad_y, grad_x, n,
                    [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::IfThenElse(hn::Lt(zero<T>(), v), g, zero<T>()); });
    case Unary::EluPlusOne:
      return zip<T>(x, grad_y, grad_x, n, [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, exp(at_most(v, 0))); });
    case Unary::GeluTanh:
      return zip<T>(x, grad_y, grad_x, n,
                    [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, gelu_tanh_derivative(v)); });
    case Unary::GeluErf:
      return zip<T>(x, grad_y, grad_x, n,
                    [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, gelu_erf_derivative(v)); });
    case Unary::Erf:
      return zip<T>(x, grad_y, grad_x, n, [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, erf_derivative(v)); });
    case Unary::Sin:
      return zip<T>(x, grad_y, grad_x, n, [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, cos(v)); });
    case Unary::Cos:
      return zip<T>(x, grad_y, grad_x, n, [](Vec<T> v, Vec<T> g) HWY_ATTR { return hn::Mul(g, hn::Neg(sin(v))); });
  }
}

template <class T, class F>
void zip_rows(const T* a, const T* b, T* out, std::int64_t rows, std::int64_t width, F f) {
  for (std::int64_t r = 0; r < rows; ++r) zip<T>(a + r * width, b, out + r * width, width, f);
}
template <class T>
void binary_t(Binary op, const T* a, const T* b, T* out, std::int64_t rows, std::int64_t width) {
  using V = Vec<T>;
  switch (op) {
    case Binary::Add: return zip_rows<T>(a, b, out, rows, width, [](V x, V y) HWY_ATTR { return hn::Add(x, y); });
    case Binary::Sub: return zip_rows<T>(a, b, out, rows, width, [](V x, V y) HWY_ATTR { return hn::Sub(x, y); });
    case Binary::Mul: return zip_rows<T>(a, b, out, rows, width, [](V x, V y) HWY_ATTR { return hn::Mul(x, y); });
  }
}

template <class T>
void clamp_t(const T* x, T low, T high, T* y, std::int64_t n) {
  map<T>(x, y, n, [low, high](Vec<T> v) HWY_ATTR { return at_most(at_least(v, low), high); });
}
template <class T>
void clamp_backward_t(const T* x, T low, T high, const T* grad_y, T* grad_x, std::int64_t n) {
  zip<T>(x, grad_y, grad_x, n, [low, high](Vec<T> v, Vec<T> g) HWY_ATTR {
    const auto outside = hn::Or(hn::Lt(v, set<T>(low)), hn::Lt(set<T>(high), v));
    return hn::IfThenElse(outside, zero<T>(), g);
  });
}

template <class T>
void scale_t(const T* x, T factor, T* out, std::int64_t n) {
  map<T>(x, out, n, [factor](Vec<T> v) HWY_ATTR { return hn::Mul(v, set<T>(factor)); });
}
template <class T>
void accumulate_t(const T* x, T factor, T* out, std::int64_t n) {
  zip<T>(x, out, out, n, [factor](Vec<T> v, Vec<T> o) HWY_ATTR { return fma(set<T>(factor), v, o); });
}

// kVectors vectors of columns from c on; the last one holds `tail` columns.
template <int kVectors, class T>
HWY_INLINE void column_sums_of(const T* x, std::int64_t stride, std::int64_t rows, std::int64_t tail, T* out) {
  Vec<T> s[kVectors];
#pragma GCC unroll 8
  for (auto& v : s) v = zero<T>();
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * stride;
#pragma GCC unroll 8
    for (int j = 0; j + 1 < kVectors; ++j) s[j] = hn::Add(s[j], load(row + j * kWidth<T>));
    const T* last = row + (kVectors - 1) * kWidth<T>;
    s[kVectors - 1] = hn::Add(s[kVectors - 1], load_part(last, tail));
  }
#pragma GCC unroll 8
  for (int j = 0; j + 1 < kVectors; ++j) store(s[j], out + j * kWidth<T>);
  store_tail(s[kVectors - 1], out + (kVectors - 1) * kWidth<T>, tail);
}
template <class T>
void column_sums_t(const T* x, std::int64_t stride, std::int64_t rows, std::int64_t width, T* out) {
  constexpr std::int64_t W = kWidth<T>;
  std::int64_t c = 0;
  for (; c + 8 * W <= width; c += 8 * W) column_sums_of<8>(x + c, stride, rows, W, out + c);
  for (; c < width; c += W) column_sums_of<1>(x + c, stride, rows, std::min(W, width - c), out + c);
}

void unary_f32(Unary op, const float* x, float* y, std::int64_t n) { unary_t(op, x, y, n); }
void unary_f64(Unary op, const double* x, double* y, std::int64_t n) { unary_t(op, x, y, n); }
void unary_backward_f32(Unary op, const float* x, const float* grad_y, float* grad_x, std::int64_t n) {
  unary_backward_t(op, x, grad_y, grad_x, n);
}
void unary_backward_f64(Unary op, const double* x, const double* grad_y, double* grad_x, std::int64_t n) {
  unary_backward_t(op, x, grad_y, grad_x, n);
}
void binary_f32(Binary op, const float* a, const float* b, float* out, std::int64_t rows, std::int64_t width) {
  binary_t(op, a, b, out, rows, width);
}
void binary_f64(Binary op, const double* a, const double* b, double* out, std::int64_t rows, std::int64_t width) {
  binary_t(op, a, b, out, rows, width);
}
void clamp_f32(const float* x, float low, float high, float* y, std::int64_t n) { clamp_t(x, low, high, y, n); }
void clamp_f64(const double* x, double low, double high, double* y, std::int64_t n) { clamp_t(x, low, high, y, n); }
void clamp_backward_f32(const float* x, float low, float high, const float* grad_y, float* grad_x, std::int64_t n) {
  clamp_backward_t(x, low, high, grad_y, grad_x, n);
}
void clamp_backward_f64(const double* x, double low, double high, const double* grad_y, double* grad_x,
                        std::int64_t n) {
  clamp_backward_t(x, low, high, grad_y, grad_x, n);
}
void scale_f32(const float* x, float factor, float* out, std::int64_t n) { scale_t(x, factor, out, n); }
void scale_f64(const double* x, double factor, double* out, std::int64_t n) { scale_t(x, factor, out, n); }
void accumulate_f32(const float* x, float factor, float* out, std::int64_t n) { accumulate_t(x, factor, out, n); }
void accumulate_f64(const double* x, double factor, double* out, std::int64_t n) { accumulate_t(x, factor, out, n); }
void column_sums_f32(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t width, float* out) {
  column_sums_t(x, stride, rows, width, out);
}
void column_sums_f64(const double* x, std::int64_t stride, std::int64_t rows, std::int64_t width, double* out) {
  column_sums_t(x, stride, rows, width, out);
}
float sum_f32(const float* x, std::int64_t n) { return sum16(x, n); }
double sum_f64(const double* x, std::int64_t n) { return sum16(x, n); }

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(unary_f32);
HWY_EXPORT(unary_f64);
HWY_EXPORT(unary_backward_f32);
HWY_EXPORT(unary_backward_f64);
HWY_EXPORT(binary_f32);
HWY_EXPORT(binary_f64);
HWY_EXPORT(clamp_f32);
HWY_EXPORT(clamp_f64);
HWY_EXPORT(clamp_backward_f32);
HWY_EXPORT(clamp_backward_f64);
HWY_EXPORT(scale_f32);
HWY_EXPORT(scale_f64);
HWY_EXPORT(accumulate_f32);
HWY_EXPORT(accumulate_f64);
HWY_EXPORT(column_sums_f32);
HWY_EXPORT(column_sums_f64);
HWY_EXPORT(sum_f32);
HWY_EXPORT(sum_f64);

void unary_array(Unary op, const float* x, float* y, std::int64_t n) { HWY_DYNAMIC_DISPATCH(unary_f32)(op, x, y, n); }
void unary_array(Unary op, const double* x, double* y, std::int64_t n) { HWY_DYNAMIC_DISPATCH(unary_f64)(op, x, y, n); }
void unary_backward_array(Unary op, const float* x, const float* grad_y, float* grad_x, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(unary_backward_f32)(op, x, grad_y, grad_x, n);
}
void unary_backward_array(Unary op, const double* x, const double* grad_y, double* grad_x, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(unary_backward_f64)(op, x, grad_y, grad_x, n);
}
void binary_rows(Binary op, const float* a, const float* b, float* out, std::int64_t rows, std::int64_t width) {
  HWY_DYNAMIC_DISPATCH(binary_f32)(op, a, b, out, rows, width);
}
void binary_rows(Binary op, const double* a, const double* b, double* out, std::int64_t rows, std::int64_t width) {
  HWY_DYNAMIC_DISPATCH(binary_f64)(op, a, b, out, rows, width);
}
void clamp_array(const float* x, float low, float high, float* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(clamp_f32)(x, low, high, y, n);
}
void clamp_array(const double* x, double low, double high, double* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(clamp_f64)(x, low, high, y, n);
}
void clamp_backward_array(const float* x, float low, float high, const float* grad_y, float* grad_x, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(clamp_backward_f32)(x, low, high, grad_y, grad_x, n);
}
void clamp_backward_array(const double* x, double low, double high, const double* grad_y, double* grad_x,
                          std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(clamp_backward_f64)(x, low, high, grad_y, grad_x, n);
}
void scale_array(const float* x, float factor, float* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(scale_f32)(x, factor, out, n);
}
void scale_array(const double* x, double factor, double* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(scale_f64)(x, factor, out, n);
}
void accumulate_array(const float* x, float factor, float* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(accumulate_f32)(x, factor, out, n);
}
void accumulate_array(const double* x, double factor, double* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(accumulate_f64)(x, factor, out, n);
}
void column_sums_array(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t width, float* out) {
  HWY_DYNAMIC_DISPATCH(column_sums_f32)(x, stride, rows, width, out);
}
void column_sums_array(const double* x, std::int64_t stride, std::int64_t rows, std::int64_t width, double* out) {
  HWY_DYNAMIC_DISPATCH(column_sums_f64)(x, stride, rows, width, out);
}
float sum_array(const float* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_f32)(x, n); }
double sum_array(const double* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_f64)(x, n); }

}  // namespace stepwell::ops
#endif
