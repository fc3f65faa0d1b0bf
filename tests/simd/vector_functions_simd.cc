// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/vector_functions_simd.cc"
#include "hwy/foreach_target.h"

#include "simd/math-inl.h"
#include "simd/reduce-inl.h"
#include "tests/simd/vector_functions.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::simd::HWY_NAMESPACE {

template <class T, class F>
void map(const T* x, T* y, std::int64_t n, F f) {
  for_vectors<T>(
      n, [&](std::int64_t i, std::int64_t lanes) HWY_ATTR { store_part<T>(f(load_part(x + i, lanes)), y + i, lanes); });
}

template <class T>
void apply_t(Function function, const T* x, T* y, std::int64_t n) {
  switch (function) {
    case Function::Exp: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return exp(v); });
    case Function::ExpBounded: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return exp_bounded(v); });
    case Function::Exp2: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return exp2(v); });
    case Function::Exp2Unclamped: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return exp2_unclamped(v); });
    case Function::Expm1: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return expm1(v); });
    case Function::DecayRate: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return decay_rate(v); });
    case Function::Log: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return log(v); });
    case Function::Log1p: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return log1p(v); });
    case Function::Tanh: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return tanh(v); });
    case Function::Sigmoid: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return sigmoid(v); });
    case Function::LogSigmoid: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return log_sigmoid(v); });
    case Function::Silu: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return silu(v); });
    case Function::Softplus: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return softplus(v); });
    case Function::GeluTanh: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return gelu_tanh(v); });
    case Function::GeluErf: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return gelu_erf(v); });
    case Function::Erf: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return erf(v); });
    case Function::Sin: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return sin(v); });
    case Function::Cos: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return cos(v); });
    case Function::TanhDerivative: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return tanh_derivative(v); });
    case Function::SigmoidDerivative: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return sigmoid_derivative(v); });
    case Function::LogSigmoidDerivative:
      return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return log_sigmoid_derivative(v); });
    case Function::SiluDerivative: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return silu_derivative(v); });
    case Function::SoftplusDerivative: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return softplus_derivative(v); });
    case Function::GeluTanhDerivative:
      return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return gelu_tanh_derivative(v); });
    case Function::GeluErfDerivative: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return gelu_erf_derivative(v); });
    case Function::ErfDerivative: return map<T>(x, y, n, [](Vec<T> v) HWY_ATTR { return erf_derivative(v); });
  }
}

void apply_f32(Function f, const float* x, float* y, std::int64_t n) { apply_t(f, x, y, n); }
void apply_f64(Function f, const double* x, double* y, std::int64_t n) { apply_t(f, x, y, n); }
float sum_f32(const float* x, std::int64_t n) { return sum16(x, n); }
double sum_f64(const double* x, std::int64_t n) { return sum16(x, n); }
float dot_f32(const float* x, const float* y, std::int64_t n) { return dot16(x, y, n); }
double dot_f64(const double* x, const double* y, std::int64_t n) { return dot16(x, y, n); }

}  // namespace stepwell::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::simd {

HWY_EXPORT(apply_f32);
HWY_EXPORT(apply_f64);
HWY_EXPORT(sum_f32);
HWY_EXPORT(sum_f64);
HWY_EXPORT(dot_f32);
HWY_EXPORT(dot_f64);

void apply(Function f, const float* x, float* y, std::int64_t n) { HWY_DYNAMIC_DISPATCH(apply_f32)(f, x, y, n); }
void apply(Function f, const double* x, double* y, std::int64_t n) { HWY_DYNAMIC_DISPATCH(apply_f64)(f, x, y, n); }
float sum_of(const float* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_f32)(x, n); }
double sum_of(const double* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_f64)(x, n); }
float dot_of(const float* x, const float* y, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(dot_f32)(x, y, n); }
double dot_of(const double* x, const double* y, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(dot_f64)(x, y, n); }

const char* function_name(Function f) {
  switch (f) {
    case Function::Exp: return "exp";
    case Function::ExpBounded: return "exp_bounded";
    case Function::Exp2: return "exp2";
    case Function::Exp2Unclamped: return "exp2_unclamped";
    case Function::Expm1: return "expm1";
    case Function::DecayRate: return "decay_rate";
    case Function::Log: return "log";
    case Function::Log1p: return "log1p";
    case Function::Tanh: return "tanh";
    case Function::Sigmoid: return "sigmoid";
    case Function::LogSigmoid: return "log_sigmoid";
    case Function::Silu: return "silu";
    case Function::Softplus: return "softplus";
    case Function::GeluTanh: return "gelu_tanh";
    case Function::GeluErf: return "gelu_erf";
    case Function::Erf: return "erf";
    case Function::Sin: return "sin";
    case Function::Cos: return "cos";
    case Function::TanhDerivative: return "tanh_derivative";
    case Function::SigmoidDerivative: return "sigmoid_derivative";
    case Function::LogSigmoidDerivative: return "log_sigmoid_derivative";
    case Function::SiluDerivative: return "silu_derivative";
    case Function::SoftplusDerivative: return "softplus_derivative";
    case Function::GeluTanhDerivative: return "gelu_tanh_derivative";
    case Function::GeluErfDerivative: return "gelu_erf_derivative";
    case Function::ErfDerivative: return "erf_derivative";
  }
  return "?";
}

}  // namespace stepwell::simd
#endif
