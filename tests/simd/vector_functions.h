// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The vector functions of src/simd, compiled for every instruction set, as plain functions on arrays.
namespace stepwell::simd {

enum class Function {
  Exp,
  ExpBounded,
  Exp2,
  Exp2Unclamped,
  Expm1,
  DecayRate,
  Log,
  Log1p,
  Tanh,
  Sigmoid,
  LogSigmoid,
  Silu,
  Softplus,
  GeluTanh,
  GeluErf,
  Erf,
  Sin,
  Cos,
  TanhDerivative,
  SigmoidDerivative,
  LogSigmoidDerivative,
  SiluDerivative,
  SoftplusDerivative,
  GeluTanhDerivative,
  GeluErfDerivative,
  ErfDerivative,
};
inline constexpr int kFunctions = static_cast<int>(Function::ErfDerivative) + 1;
const char* function_name(Function f);

// y[i] = f(x[i]), the last elements through load_tail and store_tail.
void apply(Function f, const float* x, float* y, std::int64_t n);
void apply(Function f, const double* x, double* y, std::int64_t n);

float sum_of(const float* x, std::int64_t n);
double sum_of(const double* x, std::int64_t n);
float dot_of(const float* x, const float* y, std::int64_t n);
double dot_of(const double* x, const double* y, std::int64_t n);

}  // namespace stepwell::simd
