// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// The vector functions: largest errors as their headers state them, special values, and the same bits on every
// instruction set with fused multiply-add.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/flush_to_zero.h"

#include "tests/simd/every_isa.h"
#include "tests/simd/vector_functions.h"

namespace stepwell::simd {
namespace {

using Exact = long double (*)(long double);

const long double kPi = std::acos(-1.0L);

long double sigmoid_exact(long double x) {
  const long double e = std::exp(-std::fabs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}
long double phi_exact(long double x) { return std::erfc(-x / std::sqrt(2.0L)) / 2; }
long double bell_exact(long double x) { return std::exp(-x * x / 2) / std::sqrt(2 * kPi); }
long double gelu_argument(long double x) { return std::sqrt(8 / kPi) * (x + 0.044715L * x * x * x); }
long double gelu_slope(long double x) { return std::sqrt(8 / kPi) * (1 + 3 * 0.044715L * x * x); }

// One function: what it should be, where it is swept, the error allowed. Errors are counted in units of the last place
// of max(|exact|, scale); a scale above 0 serves functions whose error is absolute near a root or deep in a tail.
struct Row {
  Function function;
  Exact exact;
  double low, high;      // in float
  double low64, high64;  // in double
  double ulp32, ulp64;
  double scale;
};

constexpr double kMax = std::numeric_limits<float>::max();

const Row kRows[] = {
    {Function::Exp, [](long double x) { return std::exp(x); }, -110, 110, -800, 800, 1, 1, 0},
    {Function::ExpBounded, [](long double x) { return std::exp(x); }, -110, 60, -800, 60, 1, 1, 0},
    {Function::Exp2, [](long double x) { return std::exp2(x); }, -140, 140, -1100, 1100, 1.8, 1, 0},
    {Function::Exp2Unclamped, [](long double x) { return std::exp2(x); }, -126, 127.5, -1022, 1023.5, 1.8, 1, 0},
    {Function::Expm1, [](long double x) { return std::expm1(x); }, -110, 110, -800, 800, 2, 2, 0},
    {Function::DecayRate, [](long double x) { return -std::exp(x); }, -110, 88, -800, 709, 1, 1, 0},
    {Function::Log, [](long double x) { return std::log(x); }, 0, kMax, 0, 1e308, 1, 1, 0},
    {Function::Log1p, [](long double x) { return std::log1p(x); }, -1, kMax, -1, 1e308, 1.5, 1.5, 0},
    {Function::Tanh, [](long double x) { return std::tanh(x); }, -30, 30, -30, 30, 3, 3, 0},
    {Function::Sigmoid, sigmoid_exact, -110, 110, -800, 800, 2.5, 2.5, 0},
    {Function::LogSigmoid, [](long double x) { return (x < 0 ? x : 0) - std::log1p(std::exp(-std::fabs(x))); }, -110,
     110, -800, 800, 2.5, 2.5, 0},
    {Function::Silu, [](long double x) { return x * sigmoid_exact(x); }, -87, 110, -708, 800, 3.5, 3.5, 0},
    {Function::Softplus, [](long double x) { return x > 20 ? x : std::log1p(std::exp(x)); }, -110, 110, -800, 800, 2.5,
     2.5, 0},
    {Function::GeluTanh, [](long double x) { return x * sigmoid_exact(gelu_argument(x)); }, -20, 20, -20, 20, 6, 6,
     0.1},
    {Function::GeluErf, [](long double x) { return x * phi_exact(x); }, -12, 20, -37, 40, 6, 6, 0},
    {Function::Erf, [](long double x) { return std::erf(x); }, -10, 10, -10, 10, 3, 3, 0},
    {Function::Sin, [](long double x) { return std::sin(x); }, -66000, 66000, -2e9, 2e9, 2, 2, 0},
    {Function::Cos, [](long double x) { return std::cos(x); }, -66000, 66000, -2e9, 2e9, 2, 2, 0},
    {Function::TanhDerivative, [](long double x) { return 1 / (std::cosh(x) * std::cosh(x)); }, -40, 40, -350, 350, 5,
     5, 0},
    {Function::SigmoidDerivative, [](long double x) { return sigmoid_exact(x) * sigmoid_exact(-x); }, -87, 87, -708,
     708, 4, 4, 0},
    {Function::LogSigmoidDerivative, [](long double x) { return sigmoid_exact(-x); }, -110, 110, -800, 800, 2.5, 2.5,
     0},
    {Function::SiluDerivative, [](long double x) { return sigmoid_exact(x) * (1 + x * sigmoid_exact(-x)); }, -110, 110,
     -800, 800, 5, 5, 0.1},
    {Function::SoftplusDerivative, [](long double x) { return x > 20 ? 1 : sigmoid_exact(x); }, -110, 110, -800, 800,
     2.5, 2.5, 0},
    {Function::GeluTanhDerivative,
     [](long double x) {
       const long double y = gelu_argument(x), s = sigmoid_exact(y);
       return s + x * s * sigmoid_exact(-y) * gelu_slope(x);
     },
     -20, 20, -20, 20, 3, 3, 0.5},
    {Function::GeluErfDerivative, [](long double x) { return phi_exact(x) + x * bell_exact(x); }, -40, 40, -40, 40, 2,
     2, 0.5},
    {Function::ErfDerivative, [](long double x) { return 2 / std::sqrt(kPi) * std::exp(-x * x); }, -9, 9, -26, 26, 3, 3,
     0},
};

// About `count` numbers of [low, high]: half spread evenly over the bit patterns, so that every magnitude is visited
// alike, half evenly over the numbers.
template <class T>
std::vector<T> sweep(double low, double high, std::int64_t count) {
  using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::vector<T> xs;
  for (const T end : {static_cast<T>(low), static_cast<T>(high)}) {
    const U first = std::bit_cast<U>(std::numeric_limits<T>::min()), last = std::bit_cast<U>(std::fabs(end));
    if (last < first) continue;
    const U step = std::max<U>(1, (last - first) / static_cast<U>(count / 4));
    for (U u = last;; u -= step) {
      xs.push_back(std::copysign(std::bit_cast<T>(u), end));
      if (u < first + step) break;
    }
  }
  for (std::int64_t i = 0; i < count / 2; ++i) {
    xs.push_back(static_cast<T>(low + (high - low) * (static_cast<double>(i) / static_cast<double>(count / 2))));
  }
  return xs;
}

// Largest error of `row` over a sweep, with the place it occurs.
struct Worst {
  double ulp = 0, x = 0, got = 0;
};
template <class T>
Worst largest_error(const Row& row, std::int64_t count) {
  using Limits = std::numeric_limits<T>;
  const auto xs = sizeof(T) == 4 ? sweep<T>(row.low, row.high, count) : sweep<T>(row.low64, row.high64, count);
  std::vector<T> ys(xs.size(), Limits::quiet_NaN());
  {
    FlushToZero mode;
    apply(row.function, xs.data(), ys.data(), static_cast<std::int64_t>(xs.size()));
  }
  Worst worst;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const long double want = row.exact(xs[i]);
    const T rounded = static_cast<T>(want);
    const T size = std::max(std::fabs(rounded), static_cast<T>(row.scale));
    double error;
    if (std::isinf(rounded) || std::isinf(ys[i])) {
      error = rounded == ys[i] ? 0 : INFINITY;
    } else if (size < 2 * Limits::min()) {  // where flush-to-zero decides
      error = std::fabs(ys[i]) <= 2 * Limits::min() ? 0 : INFINITY;
    } else {
      error = static_cast<double>(std::fabs(ys[i] - want) / std::ldexp(1.0L, std::ilogb(size) - (Limits::digits - 1)));
    }
    if (!(error <= worst.ulp)) worst = {error, static_cast<double>(xs[i]), static_cast<double>(ys[i])};
  }
  return worst;
}

TEST(Math, LargestErrorsAreAsStated) {
  for (const Row& row : kRows) {
    const Worst narrow = largest_error<float>(row, 400000), wide = largest_error<double>(row, 200000);
    EXPECT_LE(narrow.ulp, row.ulp32) << function_name(row.function) << " at " << narrow.x << ": " << narrow.got;
    EXPECT_LE(wide.ulp, row.ulp64) << function_name(row.function) << " at " << wide.x << ": " << wide.got;
    RecordProperty(function_name(row.function), std::to_string(narrow.ulp) + " " + std::to_string(wide.ulp));
  }
}

TEST(Math, WithoutFusedMultiplyAddErrorsStayNearThat) {
  for_every_isa([](Isa isa) {
    if (has_fma(isa)) return;
    for (const Row& row : kRows) {
      // Only the tails of the bell curve, whose argument is a square, lose more than a digit.
      const bool bell = row.function == Function::GeluErf || row.function == Function::ErfDerivative;
      const Worst narrow = largest_error<float>(row, 40000), wide = largest_error<double>(row, 40000);
      EXPECT_LE(narrow.ulp, bell ? 200 : 3 * row.ulp32) << function_name(row.function) << " at " << narrow.x;
      EXPECT_LE(wide.ulp, bell ? 1500 : 3 * row.ulp64) << function_name(row.function) << " at " << wide.x;
    }
  });
}

// Zeros, infinities, NaN, the ends of the number range and of every function's cases.
template <class T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> xs = {0,
                       Limits::infinity(),
                       Limits::quiet_NaN(),
                       Limits::min(),
                       Limits::max(),
                       Limits::epsilon(),
                       Limits::epsilon() / 2,
                       Limits::denorm_min(),
                       Limits::min() / 2};
  for (const double edge : {0.5,      1.0,      10.0,    14.0,      18.0,         20.0,      38.0,      38.5,  60.0,
                            87.33655, 88.72284, 126.0,   127.5,     128.0,        708.39641, 709.78271, 745.2, 1022.0,
                            1024.0,   4096.0,   65536.0, 1048576.0, 1073741824.0, 1e22,      3e38}) {
    const T x = static_cast<T>(edge);
    xs.insert(xs.end(), {x, std::nextafter(x, Limits::infinity()), std::nextafter(x, T{0})});
  }
  for (std::size_t i = 0, n = xs.size(); i < n; ++i) xs.push_back(-xs[i]);
  return xs;
}

template <class T>
std::vector<T> arguments() {
  std::vector<T> xs = special_values<T>();
  std::mt19937_64 generator(1);
  auto uniform = [&] { return static_cast<double>(generator() >> 11) * 0x1p-53; };
  for (int i = 0; i < 4000; ++i) xs.push_back(static_cast<T>(8 * uniform() - 4));
  for (int i = 0; i < 4000; ++i) xs.push_back(static_cast<T>(400 * uniform() - 200));
  for (int i = 0; i < 4000; ++i)
    xs.push_back(static_cast<T>(std::ldexp(2 * uniform() - 1, static_cast<int>(generator() % 250) - 125)));
  return xs;
}

template <class T>
std::vector<T> value_of(Function f, const std::vector<T>& x) {
  std::vector<T> y(x.size(), T{-77});
  FlushToZero mode;
  apply(f, x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  return y;
}
template <class T>
T value_of(Function f, T x) {
  return value_of(f, std::vector<T>{x})[0];
}

template <class T>
class MathOf : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(MathOf, Types);

TYPED_TEST(MathOf, SameBitsOnEveryInstructionSetWithFusedMultiplyAdd) {
  using T = TypeParam;
  using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const auto xs = arguments<T>();
  std::vector<std::vector<T>> first;
  int compared = 0;
  for_every_isa([&](Isa isa) {
    if (!has_fma(isa)) return;
    ++compared;
    for (int f = 0; f < kFunctions; ++f) {
      const auto function = static_cast<Function>(f);
      const auto ys = value_of(function, xs);
      if (compared == 1) {
        first.push_back(ys);
        continue;
      }
      for (std::size_t i = 0; i < xs.size(); ++i) {
        // Outside their ranges the unchecked forms promise nothing, but that nothing is the same nothing.
        const T want = first[static_cast<std::size_t>(f)][i];
        if (std::isnan(want) && std::isnan(ys[i])) continue;
        ASSERT_EQ(std::bit_cast<U>(ys[i]), std::bit_cast<U>(want))
            << function_name(function) << '(' << xs[i] << ") on " << isa_name(isa);
      }
    }
  });
  if (compared < 2) GTEST_SKIP() << "only one instruction set with fused multiply-add here";
}

TYPED_TEST(MathOf, NaNComesOutWhereNaNGoesIn) {
  using T = TypeParam;
  using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  // Payloads too: a NaN's bits take part in integer arithmetic.
  const U quiet = std::bit_cast<U>(std::numeric_limits<T>::quiet_NaN());
  const std::vector<T> xs = {std::bit_cast<T>(quiet), std::bit_cast<T>(quiet | U{1}),
                             std::bit_cast<T>(quiet | U{0x1FF}), -std::bit_cast<T>(quiet | U{0x12345})};
  for_every_isa([&](Isa isa) {
    for (int f = 0; f < kFunctions; ++f) {
      const auto function = static_cast<Function>(f);
      if (function == Function::Exp2Unclamped) continue;
      for (const T y : value_of(function, xs)) EXPECT_TRUE(std::isnan(y)) << function_name(function) << isa_name(isa);
    }
  });
}

TYPED_TEST(MathOf, SpecialValues) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  constexpr T kInfinity = Limits::infinity(), kLargest = Limits::max(), kSmallest = Limits::min();
  struct Case {
    Function f;
    T x, y;
  };
  const Case cases[] = {
      {Function::Exp, 0, 1},
      {Function::Exp, -T{0}, 1},
      {Function::Exp, -kInfinity, 0},
      {Function::Exp, kInfinity, kInfinity},
      {Function::Exp, -kLargest, 0},
      {Function::Exp, kLargest, kInfinity},
      {Function::Exp, sizeof(T) == 4 ? T{-104} : T{-746}, 0},
      {Function::ExpBounded, 0, 1},
      {Function::ExpBounded, -kInfinity, 0},
      {Function::ExpBounded, -kLargest, 0},
      {Function::Exp2, 0, 1},
      {Function::Exp2, 3, 8},
      {Function::Exp2, -3, T{0.125}},
      {Function::Exp2, -kInfinity, 0},
      {Function::Exp2, kInfinity, kInfinity},
      {Function::Exp2, sizeof(T) == 4 ? T{-126} : T{-1022}, kSmallest},
      {Function::Exp2, sizeof(T) == 4 ? T{128} : T{1024}, kInfinity},
      {Function::Expm1, 0, 0},
      {Function::Expm1, -T{0}, -T{0}},
      {Function::Expm1, kSmallest, kSmallest},
      {Function::Expm1, -kInfinity, -1},
      {Function::Expm1, kInfinity, kInfinity},
      {Function::Expm1, -100, -1},
      {Function::DecayRate, kInfinity, -kLargest},
      {Function::DecayRate, -kInfinity, -T{0}},
      {Function::Log, 1, 0},
      {Function::Log, 0, -kInfinity},
      {Function::Log, -T{0}, -kInfinity},
      {Function::Log, kInfinity, kInfinity},
      {Function::Log1p, 0, 0},
      {Function::Log1p, -T{0}, -T{0}},
      {Function::Log1p, kSmallest, kSmallest},
      {Function::Log1p, -1, -kInfinity},
      {Function::Log1p, kInfinity, kInfinity},
      {Function::Tanh, 0, 0},
      {Function::Tanh, -T{0}, -T{0}},
      {Function::Tanh, kInfinity, 1},
      {Function::Tanh, -kInfinity, -1},
      {Function::Tanh, kLargest, 1},
      {Function::Tanh, 20, 1},
      {Function::Tanh, -20, -1},
      {Function::Tanh, kSmallest, kSmallest},
      {Function::Sigmoid, 0, T{0.5}},
      {Function::Sigmoid, kInfinity, 1},
      {Function::Sigmoid, -kInfinity, 0},
      {Function::LogSigmoid, -kInfinity, -kInfinity},
      {Function::LogSigmoid, kInfinity, 0},
      {Function::Silu, 0, 0},
      {Function::Silu, -kInfinity, -T{0}},
      {Function::Silu, -kLargest, -T{0}},
      {Function::Silu, kInfinity, kInfinity},
      {Function::Softplus, -kInfinity, 0},
      {Function::Softplus, kInfinity, kInfinity},
      {Function::Softplus, T{20.5}, T{20.5}},
      {Function::GeluTanh, -kInfinity, -T{0}},
      {Function::GeluTanh, kInfinity, kInfinity},
      {Function::GeluTanh, -kLargest, -T{0}},
      {Function::GeluErf, -kInfinity, -T{0}},
      {Function::GeluErf, kInfinity, kInfinity},
      {Function::GeluErf, kLargest, kLargest},
      {Function::Erf, 0, 0},
      {Function::Erf, -T{0}, -T{0}},
      {Function::Erf, kInfinity, 1},
      {Function::Erf, -kInfinity, -1},
      {Function::Sin, 0, 0},
      {Function::Sin, -T{0}, -T{0}},
      {Function::Cos, 0, 1},
      {Function::TanhDerivative, 0, 1},
      {Function::TanhDerivative, kInfinity, 0},
      {Function::SigmoidDerivative, -kInfinity, 0},
      {Function::SiluDerivative, 0, T{0.5}},
      {Function::SiluDerivative, kInfinity, 1},
      {Function::SoftplusDerivative, 21, 1},
      {Function::SoftplusDerivative, -kInfinity, 0},
      {Function::LogSigmoidDerivative, kInfinity, 0},
      {Function::GeluTanhDerivative, kInfinity, 1},
      {Function::GeluErfDerivative, kInfinity, 1},
      {Function::ErfDerivative, kInfinity, 0},
  };
  for_every_isa([&](Isa isa) {
    for (const Case& c : cases) {
      const T y = value_of(c.f, c.x);
      EXPECT_EQ(y, c.y) << function_name(c.f) << '(' << c.x << ") on " << isa_name(isa);
      EXPECT_EQ(std::signbit(y), std::signbit(c.y)) << function_name(c.f) << '(' << c.x << ") on " << isa_name(isa);
    }
    for (const auto& [f, x] : {std::pair{Function::Log, T{-1}},
                               {Function::Log1p, T{-2}},
                               {Function::Sin, kInfinity},
                               {Function::Cos, -kInfinity}}) {
      EXPECT_TRUE(std::isnan(value_of(f, x))) << function_name(f);
    }
    for (const Function f : {Function::SiluDerivative, Function::GeluTanhDerivative, Function::GeluErfDerivative}) {
      EXPECT_EQ(value_of(f, -kInfinity), 0) << function_name(f) << isa_name(isa);
    }
  });
}

TYPED_TEST(MathOf, BoundedFunctionsStayInTheirBounds) {
  using T = TypeParam;
  const auto xs = sweep<T>(-60, 60, 100000);
  for_every_isa([&](Isa) {
    for (const auto& [f, low] : {std::pair{Function::Tanh, T{-1}},
                                 {Function::Erf, T{-1}},
                                 {Function::Sigmoid, T{0}},
                                 {Function::Sin, T{-1}},
                                 {Function::Cos, T{-1}}}) {
      for (const T y : value_of(f, xs)) ASSERT_TRUE(y >= low && y <= 1) << function_name(f) << y;
    }
    for (const T y : value_of(Function::Softplus, xs)) ASSERT_GE(y, 0);
  });
}

TYPED_TEST(MathOf, TheUncheckedFormsGiveTheSameBitsInTheirRange) {
  using T = TypeParam;
  const bool narrow = sizeof(T) == 4;
  const auto powers = sweep<T>(narrow ? -126 : -1022, narrow ? 127.99 : 1023.99, 200000);
  EXPECT_EQ(value_of(Function::Exp2, powers), value_of(Function::Exp2Unclamped, powers));
  const auto exponents = sweep<T>(-1000, 60, 200000);
  EXPECT_EQ(value_of(Function::Exp, exponents), value_of(Function::ExpBounded, exponents));
}

TEST(FieldReport, P4_DecayIsNeverNaN) {
  // exp(−exp(A_log)·softplus(x)) in float, beside double with exp(A_log) capped at the largest float.
  for_every_isa([](Isa isa) {
    for (const double a : {-100.0, -20.0, 0.0, 5.0, 88.0, 89.0, 100.0}) {
      for (const double x : {-200.0, -100.0, -30.0, -15.0, -3.0, 0.0, 19.9, 20.1, 50.0, 1e4}) {
        const float rate = value_of(Function::DecayRate, static_cast<float>(a));
        const float step = value_of(Function::Softplus, static_cast<float>(x));
        const float decay = value_of(Function::Exp, rate * step);
        // A step below the smallest normal float counts as 0.
        const double exact = x > 20 ? x : std::log1p(std::exp(x));
        const double want =
            std::exp(-std::min(std::exp(a), kMax) * (exact < std::numeric_limits<float>::min() ? 0 : exact));
        EXPECT_GE(decay, 0) << isa_name(isa);
        EXPECT_LE(decay, 1);
        EXPECT_NEAR(decay, want, 1e-6) << a << ' ' << x << isa_name(isa);
      }
    }
    EXPECT_EQ(value_of(Function::Exp, value_of(Function::DecayRate, 100.f) * value_of(Function::Softplus, -200.f)), 1);
    EXPECT_EQ(value_of(Function::Exp, value_of(Function::DecayRate, 100.f) * value_of(Function::Softplus, 0.f)), 0);
  });
}

TEST(FieldReport, P4_SmallStepsKeepTheirDigits) {
  for_every_isa([](Isa isa) {
    EXPECT_NEAR(value_of(Function::Softplus, -15.f) / 3.0590227e-7, 1, 1e-6) << isa_name(isa);
    for (float x = -87; x < -3; x += 0.25f) {
      const double want = std::log1p(std::exp(static_cast<double>(x)));
      EXPECT_NEAR(value_of(Function::Softplus, x) / want, 1, 1e-6) << x << isa_name(isa);
    }
  });
}

}  // namespace
}  // namespace stepwell::simd
