// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/elementwise.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/tensor.h"

namespace stepwell {
namespace {

using ops::Unary;
using Scalar = double (*)(double);

double sig(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double phi(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }
double bell(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0)); }
double tanh_argument(double x) { return 2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x); }
double tanh_slope(double x) { return 2 * std::sqrt(2 / std::acos(-1.0)) * (1 + 3 * 0.044715 * x * x); }

struct Row {
  Unary op;
  const char* name;
  double low, high;
  Scalar value, derivative;
};

const Row kRows[] = {
    {Unary::Exp, "exp", -20, 20, [](double x) { return std::exp(x); }, [](double x) { return std::exp(x); }},
    {Unary::Expm1, "expm1", -20, 20, [](double x) { return std::expm1(x); }, [](double x) { return std::exp(x); }},
    {Unary::DecayRate, "decay_rate", -20, 20, [](double x) { return -std::exp(x); },
     [](double x) { return -std::exp(x); }},
    {Unary::Log, "log", 0.01, 50, [](double x) { return std::log(x); }, [](double x) { return 1 / x; }},
    {Unary::Log1p, "log1p", -0.9, 50, [](double x) { return std::log1p(x); }, [](double x) { return 1 / (1 + x); }},
    {Unary::Tanh, "tanh", -5, 5, [](double x) { return std::tanh(x); },
     [](double x) { return 1 / (std::cosh(x) * std::cosh(x)); }},
    {Unary::Sigmoid, "sigmoid", -20, 20, sig, [](double x) { return sig(x) * sig(-x); }},
    {Unary::LogSigmoid, "log_sigmoid", -20, 20,
     [](double x) { return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x)); },
     [](double x) { return sig(-x); }},
    {Unary::Silu, "silu", -20, 20, [](double x) { return x * sig(x); },
     [](double x) { return sig(x) * (1 + x * sig(-x)); }},
    {Unary::Softplus, "softplus", -30, 30, [](double x) { return x > 20 ? x : std::log1p(std::exp(x)); },
     [](double x) { return x > 20 ? 1 : sig(x); }},
    {Unary::Relu, "relu", -5, 5, [](double x) { return x > 0 ? x : 0.0; }, [](double x) { return x > 0 ? 1.0 : 0.0; }},
    {Unary::EluPlusOne, "elu_plus_one", -20, 20, [](double x) { return x > 0 ? x + 1 : std::exp(x); },
     [](double x) { return x > 0 ? 1.0 : std::exp(x); }},
    {Unary::GeluTanh, "gelu_tanh", -6, 6, [](double x) { return x * sig(tanh_argument(x)); },
     [](double x) { return sig(tanh_argument(x)) * (1 + x * sig(-tanh_argument(x)) * tanh_slope(x)); }},
    {Unary::GeluErf, "gelu_erf", -6, 6, [](double x) { return x * phi(x); },
     [](double x) { return phi(x) + x * bell(x); }},
    {Unary::Erf, "erf", -4, 4, [](double x) { return std::erf(x); },
     [](double x) { return 2 / std::sqrt(std::acos(-1.0)) * std::exp(-x * x); }},
    {Unary::Sin, "sin", -50, 50, [](double x) { return std::sin(x); }, [](double x) { return std::cos(x); }},
    {Unary::Cos, "cos", -50, 50, [](double x) { return std::cos(x); }, [](double x) { return -std::sin(x); }},
};

Tensor uniform(const Shape& shape, double low, double high, DType dtype, unsigned number) {
  std::mt19937_64 generator(number);
  Tensor t = Tensor::empty(shape, DType::F64);
  for (double& v : t.span<double>()) v = low + (high - low) * static_cast<double>(generator() >> 11) * 0x1p-53;
  return t.to(dtype);
}
Tensor poisoned(const Shape& shape, DType dtype) {
  return Tensor::full(shape, std::numeric_limits<double>::quiet_NaN(), dtype);
}

class Elementwise : public testing::TestWithParam<DType> {
 protected:
  DType dtype = GetParam();
  double epsilon = dtype == DType::F32 ? 0x1p-23 : 0x1p-52;
  Context ctx = Context::serial();
};
INSTANTIATE_TEST_SUITE_P(Types, Elementwise, testing::Values(DType::F32, DType::F64),
                         [](const auto& row) { return std::string(dtype_name(row.param)); });

// Lengths on both sides of every vector width and of a task.
const std::int64_t kLengths[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 64, 67, 32767, 32768, 32771};

TEST_P(Elementwise, UnaryFunctionsAndDerivativesEqualTheirDefinitions) {
  for (const Row& row : kRows) {
    for (const std::int64_t n : kLengths) {
      const Tensor x = uniform({n}, row.low, row.high, dtype, 1), g = uniform({n}, -1, 1, dtype, 2);
      const Tensor y = poisoned({n}, dtype), grad = poisoned({n}, dtype);
      ops::unary(ctx, row.op, x, y);
      ops::unary_backward(ctx, row.op, x, g, grad);
      for (std::int64_t i = 0; i < n; ++i) {
        const double value = row.value(x.at(i)), slope = row.derivative(x.at(i)) * g.at(i);
        ASSERT_NEAR(y.at(i), value, 6 * epsilon * std::max(std::fabs(value), 0.1)) << row.name << " at " << x.at(i);
        ASSERT_NEAR(grad.at(i), slope, 10 * epsilon * std::max(std::fabs(slope), 0.5)) << row.name << " at " << x.at(i);
      }
    }
  }
}

TEST_P(Elementwise, DecayRatesStayFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double largest = dtype == DType::F32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  const Tensor x = Tensor::from<double>(std::vector{1e4, infinity, -1e4, -infinity, std::nan("")}, {5}).to(dtype);
  const Tensor y = poisoned({5}, dtype), zero = Tensor::zeros({5}, dtype), grad = poisoned({5}, dtype);
  ops::unary(ctx, Unary::DecayRate, x, y);
  ops::unary_backward(ctx, Unary::DecayRate, x, zero, grad);
  for (const int i : {0, 1}) EXPECT_EQ(y.at(i), -largest);
  for (const int i : {2, 3}) EXPECT_EQ(y.at(i), 0);
  for (const int i : {0, 1, 2, 3}) EXPECT_EQ(grad.at(i), 0);
  EXPECT_TRUE(std::isnan(y.at(4)));
}

TEST_P(Elementwise, ClampKeepsWhatIsInsideAndItsGradient) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [low, high] : {std::pair{-1.0, 0.5}, {0.25, 0.25}, {-infinity, 0.5}, {0.5, infinity}}) {
    for (const std::int64_t n : kLengths) {
      const Tensor x = uniform({n}, -2, 2, dtype, 1), g = uniform({n}, -1, 1, dtype, 2);
      if (n > 1) x.slice(0, 1, 1).fill(0.5);  // on a limit
      const Tensor y = poisoned({n}, dtype), grad = poisoned({n}, dtype);
      ops::clamp(ctx, x, low, high, y);
      ops::clamp_backward(ctx, x, low, high, g, grad);
      for (std::int64_t i = 0; i < n; ++i) {
        const double v = x.at(i);
        ASSERT_EQ(y.at(i), std::clamp(v, low, high));
        ASSERT_EQ(grad.at(i), v >= low && v <= high ? g.at(i) : 0) << v;
      }
    }
  }
  const Tensor nan = Tensor::full({3}, std::nan(""), dtype);
  ops::clamp(ctx, nan, 0, 1, nan);
  EXPECT_TRUE(std::isnan(nan.at(1)));
  EXPECT_THROW(ops::clamp(ctx, nan, 1, 0, nan), Error);
  EXPECT_THROW(ops::clamp_backward(ctx, nan, 0, std::nan(""), nan, nan), Error);
}

TEST_P(Elementwise, UnaryWorksInPlace) {
  const Tensor x = uniform({100}, -3, 3, dtype, 3), y = poisoned({100}, dtype), inplace = x.clone();
  ops::unary(ctx, Unary::Silu, x, y);
  ops::unary(ctx, Unary::Silu, inplace, inplace);
  EXPECT_TRUE(inplace.same_bits(y));
}

TEST_P(Elementwise, BinaryFunctionsBroadcastTrailingParts) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{3, 5, 7}, {3, 5, 7}}, {{3, 5, 7}, {5, 7}}, {{3, 5, 7}, {7}}, {{3, 5, 7}, {}}, {{70000, 1}, {1}},
      {{2, 40000}, {40000}},  {{0, 4}, {4}},       {{3, 0}, {0}},    {{}, {}},        {{1000, 67}, {67}}};
  for (const auto& [wide, narrow] : shapes) {
    const Tensor a = uniform(wide, -1, 1, dtype, 4), b = uniform(narrow, -1, 1, dtype, 5);
    const Tensor sum = poisoned(wide, dtype), difference = poisoned(wide, dtype), product = poisoned(wide, dtype);
    ops::add(ctx, a, b, sum);
    ops::sub(ctx, a, b, difference);
    ops::mul(ctx, a, b, product);
    for (std::int64_t i = 0; i < a.numel(); ++i) {
      const double x = a.at(i), y = b.at(i % b.numel());
      auto rounded = [&](double v) { return dtype == DType::F32 ? static_cast<double>(static_cast<float>(v)) : v; };
      ASSERT_EQ(sum.at(i), rounded(x + y)) << wide.to_string() << narrow.to_string() << i;
      ASSERT_EQ(difference.at(i), rounded(x - y));
      ASSERT_EQ(product.at(i), rounded(x * y));
    }
  }
}

TEST_P(Elementwise, ScaleAndAccumulate) {
  for (const std::int64_t n : kLengths) {
    const Tensor x = uniform({n}, -1, 1, dtype, 6), y = poisoned({n}, dtype), old = uniform({n}, -1, 1, dtype, 7);
    const Tensor total = old.clone();
    ops::scale(ctx, x, 0.75, y);
    ops::accumulate(ctx, x, 0.75, total);
    for (std::int64_t i = 0; i < n; ++i) {
      ASSERT_NEAR(y.at(i), x.at(i) * 0.75, epsilon);
      ASSERT_NEAR(total.at(i), old.at(i) + 0.75 * x.at(i), epsilon);
    }
  }
}

TEST_P(Elementwise, ColumnSumsAddRowsInBlocksOf256) {
  for (const std::int64_t rows : {0, 1, 2, 255, 256, 257, 1000}) {
    for (const std::int64_t width : {0, 1, 5, 16, 64, 131, 1037}) {
      const Tensor x = uniform({rows, width}, -1, 1, dtype, 8), out = poisoned({width}, dtype);
      ops::column_sums(ctx, x, out);
      dispatch_float(dtype, "test", [&]<class T>(T) {
        for (std::int64_t c = 0; c < width; ++c) {
          T total = 0;
          for (std::int64_t r0 = 0; r0 < rows; r0 += 256) {
            T block = 0;
            for (std::int64_t r = r0; r < std::min(rows, r0 + 256); ++r) block += x.data<T>()[r * width + c];
            total += block;
          }
          ASSERT_EQ(out.data<T>()[c], total) << rows << " rows, column " << c << " of " << width;
        }
      });
    }
  }
}

TEST_P(Elementwise, SumAndMeanOfAnyLength) {
  for (const std::int64_t n : {0, 1, 15, 16, 17, 4095, 4096, 4097, 40000, 200003}) {
    const Tensor x = uniform({n}, -1, 1, dtype, 9), total = poisoned({1}, dtype), average = poisoned({1}, dtype);
    ops::sum(ctx, x, total);
    ops::mean(ctx, x, average);
    long double exact = 0, size = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      exact += x.at(i);
      size += std::fabs(x.at(i));
    }
    // 16 lanes of at most 256 + 5 additions on two levels.
    const double bound = static_cast<double>(size) * epsilon * 0.5 * 40;
    EXPECT_NEAR(total.at(0), static_cast<double>(exact), bound) << n;
    EXPECT_NEAR(average.at(0), static_cast<double>(exact) / std::max<double>(1, static_cast<double>(n)),
                bound / std::max<double>(1, static_cast<double>(n)));
  }
}

TEST_P(Elementwise, BitsDoNotDependOnThreads) {
  const Tensor x = uniform({700, 211}, -3, 3, dtype, 10), b = uniform({211}, -1, 1, dtype, 11);
  std::vector<Tensor> first;
  for (const int threads : {1, 2, 3}) {
    Context parallel = Context::parallel(threads);
    const Tensor y = poisoned(x.shape(), dtype), grad = poisoned(x.shape(), dtype), biased = poisoned(x.shape(), dtype);
    const Tensor columns = poisoned({211}, dtype), total = poisoned({1}, dtype);
    ops::unary(parallel, Unary::GeluErf, x, y);
    ops::unary_backward(parallel, Unary::GeluErf, x, y, grad);
    ops::add(parallel, x, b, biased);
    ops::column_sums(parallel, x, columns);
    ops::sum(parallel, x, total);
    const std::vector<Tensor> results = {y, grad, biased, columns, total};
    if (first.empty()) first = results;
    for (std::size_t i = 0; i < results.size(); ++i)
      EXPECT_TRUE(results[i].same_bits(first[i])) << i << ", " << threads;
  }
}

TEST_P(Elementwise, FillSetsEveryElement) {
  for (const std::int64_t n : kLengths) {
    const Tensor x = poisoned({n}, dtype);
    ops::fill(ctx, x, 1.5);
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(x.at(i), 1.5);
  }
}

TEST_P(Elementwise, WrongShapesAndTypesAreErrors) {
  const DType other = dtype == DType::F32 ? DType::F64 : DType::F32;
  const Tensor a = Tensor::zeros({2, 3}, dtype), b = Tensor::zeros({2}, dtype), c = Tensor::zeros({2, 3}, other);
  const Tensor gaps = Tensor::zeros({2, 6}, dtype).slice(1, 0, 3), integers = Tensor::zeros({2, 3}, DType::I64);
  EXPECT_THROW(ops::add(ctx, a, b, a), Error);
  EXPECT_THROW(ops::add(ctx, b, a, b), Error);
  EXPECT_THROW(ops::add(ctx, a, c, a), Error);
  EXPECT_THROW(ops::add(ctx, a, a, c), Error);
  EXPECT_THROW(ops::add(ctx, a, Tensor(), a), Error);
  EXPECT_THROW(ops::add(ctx, Tensor(), a, a), Error);
  EXPECT_THROW(ops::unary(ctx, Unary::Exp, a, b), Error);
  EXPECT_THROW(ops::unary(ctx, Unary::Exp, gaps, a), Error);
  EXPECT_THROW(ops::unary(ctx, Unary::Exp, integers, integers), Error);
  EXPECT_THROW(ops::unary_backward(ctx, Unary::Exp, a, b, a), Error);
  EXPECT_THROW(ops::sum(ctx, a, b), Error);
  EXPECT_THROW(ops::column_sums(ctx, a, b), Error);
  EXPECT_THROW(ops::scale(ctx, a, 1, b), Error);
  EXPECT_THROW(ops::accumulate(ctx, a, 1, c), Error);
}

}  // namespace
}  // namespace stepwell
