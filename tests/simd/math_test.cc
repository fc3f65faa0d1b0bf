// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// Accuracy of the vector functions: dense sweeps over bit patterns against long double.
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/flush_to_zero.h"
#include "stepwell/simd/isa.h"

#include "tests/simd/vector_functions.h"

namespace stepwell::simd {
namespace {

using Exact = long double (*)(long double);

long double sigmoid_exact(long double x) {
  const long double e = std::exp(-std::fabs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}
long double phi_exact(long double x) { return std::erfc(-x / std::sqrt(2.0L)) / 2; }
long double bell_exact(long double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0L)); }
constexpr long double kGelu = 1.5957691216057307117597842397375L;  // 2·√(2/π)

struct Row {
  Function function;
  Exact exact;
  double low, high;     // swept range
  double ulp32, ulp64;  // largest error allowed
  double scale;         // errors are measured in ulp of max(|exact|, scale): > 0 where the function has roots
};

const Row kRows[] = {
    {Function::Exp, [](long double x) { return std::exp(x); }, -120, 120, 1, 1, 0},
    {Function::ExpBounded, [](long double x) { return std::exp(x); }, -120, 60, 1, 1, 0},
    {Function::Exp2, [](long double x) { return std::exp2(x); }, -140, 140, 1.8, 1, 0},
    {Function::Expm1, [](long double x) { return std::expm1(x); }, -120, 120, 2, 2, 0},
    {Function::Log, [](long double x) { return std::log(x); }, 0, 1e38, 1, 1, 0},
    {Function::Log1p, [](long double x) { return std::log1p(x); }, -1, 1e38, 1.5, 1.5, 0},
    {Function::Tanh, [](long double x) { return std::tanh(x); }, -30, 30, 3, 3, 0},
    {Function::Sigmoid, sigmoid_exact, -120, 120, 2.5, 2.5, 0},
    {Function::LogSigmoid, [](long double x) { return (x < 0 ? x : 0) - std::log1p(std::exp(-std::fabs(x))); }, -120,
     120, 2, 2, 0},
    {Function::Silu, [](long double x) { return x * sigmoid_exact(x); }, -87, 120, 3, 3.5, 0},
    {Function::Softplus, [](long double x) { return x > 20 ? x : std::log1p(std::exp(x)); }, -120, 120, 2, 2, 0},
    {Function::GeluTanh, [](long double x) { return x * sigmoid_exact(kGelu * (x + 0.044715L * x * x * x)); }, -10, 20,
     6, 6, 0.1},
    {Function::GeluErf, [](long double x) { return x * phi_exact(x); }, -12, 12, 6, 6, 0},
    {Function::Erf, [](long double x) { return std::erf(x); }, -10, 10, 3, 3, 0},
    {Function::Sin, [](long double x) { return std::sin(x); }, -65536, 65536, 2, 2, 0},
    {Function::Cos, [](long double x) { return std::cos(x); }, -65536, 65536, 2, 2, 0},
    {Function::TanhDerivative, [](long double x) { return 1 / (std::cosh(x) * std::cosh(x)); }, -30, 30, 5, 5, 0},
    {Function::SigmoidDerivative, [](long double x) { return sigmoid_exact(x) * sigmoid_exact(-x); }, -80, 80, 5, 5, 0},
    {Function::LogSigmoidDerivative, [](long double x) { return sigmoid_exact(-x); }, -120, 120, 2.5, 2.5, 0},
    {Function::SiluDerivative, [](long double x) { return sigmoid_exact(x) * (1 + x * sigmoid_exact(-x)); }, -80, 80, 5,
     5, 0.1},
    {Function::SoftplusDerivative, [](long double x) { return x > 20 ? 1 : sigmoid_exact(x); }, -120, 120, 2.5, 2.5, 0},
    {Function::GeluTanhDerivative,
     [](long double x) {
       const long double y = kGelu * (x + 0.044715L * x * x * x), s = sigmoid_exact(y);
       return s + x * s * sigmoid_exact(-y) * kGelu * (1 + 3 * 0.044715L * x * x);
     },
     -10, 10, 5, 5, 0.5},
    {Function::GeluErfDerivative, [](long double x) { return phi_exact(x) + x * bell_exact(x); }, -40, 40, 5, 5, 0.5},
    {Function::ErfDerivative, [](long double x) { return 2 / std::sqrt(std::acos(-1.0L)) * std::exp(-x * x); }, -5, 5,
     3, 3, 0},
};

// About `count` numbers of [low, high], evenly spread over the bit patterns: every magnitude is visited alike.
template <class T>
std::vector<T> sweep(double low, double high, std::int64_t count) {
  using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::vector<T> xs;
  for (const T end : {static_cast<T>(low), static_cast<T>(high)}) {
    const U top = std::bit_cast<U>(std::fabs(end)), first = std::bit_cast<U>(std::numeric_limits<T>::min());
    if (top < first) continue;
    const U step = std::max<U>(1, (top - first) / static_cast<U>(count / 2));
    for (U u = top;; u -= step) {
      xs.push_back(std::copysign(std::bit_cast<T>(u), end));
      if (u < first + step) break;
    }
  }
  // And evenly over the numbers: the large magnitudes, where most of the range lies.
  for (std::int64_t i = 0; i < count / 2; ++i)
    xs.push_back(static_cast<T>(low + (high - low) * static_cast<double>(i) / static_cast<double>(count / 2)));
  return xs;
}

template <class T>
void check(const Row& row, std::int64_t count) {
  const double allowed = sizeof(T) == 4 ? row.ulp32 : row.ulp64;
  const double widen = sizeof(T) == 8 && std::fabs(row.low) == 120 ? 6.1 : 1;
  const auto xs = sweep<T>(row.low * widen, row.high * widen, count);
  std::vector<T> ys(xs.size(), std::numeric_limits<T>::quiet_NaN());
  {
    FlushToZero mode;
    apply(row.function, xs.data(), ys.data(), static_cast<std::int64_t>(xs.size()));
  }
  double worst = 0;
  T where = 0, got = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const long double want = row.exact(xs[i]);
    const T rounded = static_cast<T>(want);
    if (std::isinf(rounded) || std::isinf(ys[i])) {
      if (rounded != ys[i]) {
        worst = INFINITY;
        where = xs[i];
        got = ys[i];
      }
      continue;
    }
    const T size = std::max(static_cast<T>(std::fabs(want)), static_cast<T>(row.scale));
    if (size < 2 * std::numeric_limits<T>::min()) {
      if (std::fabs(ys[i]) > 2 * std::numeric_limits<T>::min()) {
        worst = INFINITY;
        where = xs[i];
        got = ys[i];
      }
      continue;
    }
    const long double ulp = std::ldexp(1.0L, std::ilogb(size) - (std::numeric_limits<T>::digits - 1));
    const double error = static_cast<double>(std::fabs(ys[i] - want) / ulp);
    if (!(error <= worst)) {
      worst = error;
      where = xs[i];
      got = ys[i];
    }
  }
  std::printf("%-24s %s  %.3f ulp at %a (%g): %g\n", function_name(row.function), sizeof(T) == 4 ? "f32" : "f64", worst,
              where, where, got);
  EXPECT_LE(worst, allowed) << function_name(row.function) << " at " << where << ": " << got;
}

TEST(Math, Accuracy) {
  for (const Row& row : kRows) {
    check<float>(row, 1000000);
    check<double>(row, 1000000);
  }
}

}  // namespace
}  // namespace stepwell::simd
