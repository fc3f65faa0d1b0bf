// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/autograd/expect_gradients.h"

namespace stepwell {
namespace {

using Binary = Variable (*)(Context&, const Variable&, const Variable&);
using Unary = Variable (*)(Context&, const Variable&);

Variable gelu_erf(Context& ctx, const Variable& x) { return gelu(ctx, x, Gelu::Erf); }
Variable gelu_tanh(Context& ctx, const Variable& x) { return gelu(ctx, x, Gelu::Tanh); }

constexpr std::array<Binary, 3> kBinary = {add, sub, mul};
constexpr std::array<Unary, 11> kUnary = {exp,       tanh,       sigmoid,     silu, softplus,    gelu_erf,
                                          gelu_tanh, decay_rate, log_sigmoid, relu, elu_plus_one};

TEST(Elementwise, BinaryFunctionsHaveTheGradientsOfTheirDefinitions) {
  const std::vector<std::array<Shape, 2>> shapes = {
      {Shape{3, 5}, Shape{3, 5}}, {Shape{3, 5}, Shape{5}},    {Shape{2, 3, 7}, Shape{3, 7}}, {Shape{2, 1, 7}, Shape{7}},
      {Shape{4, 1}, Shape{1}},    {Shape{1}, Shape{1}},       {Shape{13}, Shape{13}},        {Shape{300, 2}, Shape{2}},
      {Shape{0, 3}, Shape{3}},    {Shape{2, 0}, Shape{2, 0}}, {Shape{2, 0}, Shape{0}}};
  for (const Binary f : kBinary) {
    for (const auto& [a, b] : shapes) {
      expect_gradients([f](Context& ctx, const Variables& v) { return Variables{f(ctx, v[0], v[1])}; },
                       {{"a", random_tensor(a, 1)}, {"b", random_tensor(b, 2)}}, 0);
    }
    expect_gradients([f](Context& ctx, const Variables& v) { return Variables{f(ctx, v[0], v[0])}; },
                     {{"x", random_tensor({3, 5}, 1)}});
    expect_gradients(  // slices
        [f](Context& ctx, const Variables& v) {
          const auto [a, b] = split2(ctx, v[0], 3);
          return Variables{f(ctx, a, b)};
        },
        {{"x", random_tensor({4, 6}, 1)}});
  }
}

TEST(Elementwise, UnaryFunctionsHaveTheGradientsOfTheirDefinitions) {
  for (const Unary f : kUnary) {
    for (const Shape& shape : {Shape{1}, Shape{7}, Shape{3, 13}, Shape{2, 1, 5}, Shape{0}, Shape{3, 0}}) {
      expect_gradients([f](Context& ctx, const Variables& v) { return Variables{f(ctx, v[0])}; },
                       {{"x", random_tensor(shape, 1, -4, 4)}}, shape.size());
    }
    expect_gradients(  // a slice, and a variable that is used twice
        [f](Context& ctx, const Variables& v) {
          const auto [a, b] = split2(ctx, v[0], 2);
          return Variables{mul(ctx, f(ctx, b), b), f(ctx, f(ctx, a))};
        },
        {{"x", random_tensor({3, 5}, 1)}});
  }
  expect_gradients([](Context& ctx, const Variables& v) { return Variables{log(ctx, v[0])}; },
                   {{"x", random_tensor({3, 5}, 1, 0.1, 4)}});
  expect_gradients([](Context& ctx, const Variables& v) { return Variables{clamp(ctx, v[0], -0.5, 0.25)}; },
                   {{"x", random_tensor({3, 5}, 1)}});
  for (const double factor : {0.0, -1.0, 2.5}) {
    expect_gradients([factor](Context& ctx, const Variables& v) { return Variables{scale(ctx, v[0], factor)}; },
                     {{"x", random_tensor({3, 5}, 1)}});
  }
}

TEST(Elementwise, SameBitsForEveryNumberOfThreads) {
  const auto all = [](Context& ctx, const Variables& v) {
    Variables outputs;
    for (const Binary f : kBinary) {
      outputs.push_back(f(ctx, v[0], v[1]));
      outputs.push_back(f(ctx, v[0], v[2]));
    }
    for (const Unary f : kUnary) outputs.push_back(f(ctx, v[0]));
    return outputs;
  };
  expect_same_bits(all, {random_tensor({530, 131}, 1), random_tensor({530, 131}, 2), random_tensor({131}, 3)});
}

TEST(Elementwise, LongChainsOfRealFunctions) {
  Context ctx = Context::serial();
  const Variable x = Variable::leaf(random_tensor({1}, 1));
  Variable y = x;
  for (int i = 0; i < 50000; ++i) y = add(ctx, scale(ctx, y, 0.5), scale(ctx, y, 0.5));
  EXPECT_NEAR(backward(ctx, y).of(x).at(0), 1.0, 1e-9);
}

// Gradients at the ends of the range are finite, and exact where they are known.
TEST(Elementwise, GradientsAtExtremeInputsAreFinite) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    for (const Unary f : {&tanh, &sigmoid, &silu, &softplus, &gelu_erf, &gelu_tanh}) {
      for (const double value : {0.0, 20.0, 20.1, 88.0, 709.0, 1e4, 3e38}) {
        for (const double x : {value, -value}) {
          Context ctx = Context::serial();
          const Variable leaf = Variable::leaf(Tensor::full({3}, x, dtype));
          const Variable y = f(ctx, leaf);
          const Tensor ones = Tensor::full({3}, 1, dtype);
          const double slope = backward(ctx, std::span(&y, 1), std::span(&ones, 1)).of(leaf).at(2);
          EXPECT_TRUE(std::isfinite(slope)) << x;
          EXPECT_LE(std::fabs(slope), 1.2) << x;
        }
      }
    }
  }
}

// The gate of Mamba, exp(dt·A) with dt = softplus(x + b) and A = −exp(A_log).
struct Gate {
  double decay, grad_a_log, grad_x, grad_b;
};
Gate gate(double a_log, double x, DType dtype) {
  Context ctx = Context::serial();
  const Variable a = Variable::leaf(Tensor::full({1}, a_log, dtype)), pre = Variable::leaf(Tensor::full({1}, x, dtype)),
                 bias = Variable::leaf(Tensor::zeros({1}, dtype));
  const Variable y = exp(ctx, mul(ctx, softplus(ctx, add(ctx, pre, bias)), decay_rate(ctx, a)));
  const Gradients g = backward(ctx, y);
  return {y.value().at(0), g.of(a).at(0), g.of(pre).at(0), g.of(bias).at(0)};
}

TEST(FieldReport, P4_GateFormulaIsNeverNaN) {
  for (const double a_log : {-100.0, -20.0, 0.0, 5.0, 88.0, 89.0, 100.0}) {
    for (const double x : {-200.0, -100.0, -30.0, -15.0, -3.0, 0.0, 19.9, 20.1, 50.0, 1e4}) {
      const Gate got = gate(a_log, x, DType::F32);
      const double rate = std::min(std::exp(a_log), static_cast<double>(std::numeric_limits<float>::max()));
      const double step = x > 20 ? x : std::log1p(std::exp(x));
      // Steps below the float range are zero.
      const double expected = std::exp(-(step < 1.17549435e-38 ? 0 : step) * rate);
      EXPECT_NEAR(got.decay, expected, 1e-6) << a_log << ", " << x;
      EXPECT_GE(got.decay, 0);
      EXPECT_LE(got.decay, 1);
      for (const double g : {got.grad_a_log, got.grad_x, got.grad_b})
        EXPECT_TRUE(std::isfinite(g)) << a_log << ", " << x;
    }
  }
  EXPECT_EQ(gate(100, -200, DType::F32).decay, 1);
  EXPECT_EQ(gate(100, 0, DType::F32).decay, 0);
}

TEST(FieldReport, P4_GateGradientsMatchFiniteDifferences) {
  std::vector<double> a_logs, xs;
  for (const double a_log : {-5.0, -2.0, 0.0, 1.0, 5.0}) {
    for (const double x : {-30.0, -15.0, -3.0, 0.0, 19.9, 20.1, 50.0}) {
      a_logs.push_back(a_log);
      xs.push_back(x);
    }
  }
  const auto column = [](const std::vector<double>& v) {
    return Tensor::from<double>(v, {static_cast<std::int64_t>(v.size())});
  };
  expect_gradients(
      [](Context& ctx, const Variables& v) {
        return Variables{exp(ctx, mul(ctx, softplus(ctx, add(ctx, v[1], v[2])), decay_rate(ctx, v[0])))};
      },
      {{"A_log", column(a_logs)}, {"x", column(xs)}, {"b", Tensor::zeros({35}, DType::F64)}});
}

TEST(Elementwise, NamesWhatIsWrong) {
  Context ctx = Context::serial();
  const Variable a = Tensor::zeros({2, 3});
  EXPECT_EQ(error_of([&] { add(ctx, a, Tensor::zeros({2})); }),
            "[add] a [2, 3] and b [2], expected equal shapes, or b's a trailing part of a's");
  EXPECT_EQ(error_of([&] { mul(ctx, Tensor::zeros({3}), a); }),
            "[mul] a [3] and b [2, 3], expected equal shapes, or b's a trailing part of a's");
  EXPECT_EQ(error_of([&] { sub(ctx, a, Tensor::zeros({2, 3}, DType::F64)); }),
            "[sub] b is F64 [2, 3], a is F32 [2, 3]; expected the same dtype");
  EXPECT_EQ(error_of([&] { exp(ctx, Tensor::zeros({2}, DType::I64)); }), "[exp] x is I64 [2], expected F32 or F64");
  EXPECT_EQ(error_of([&] { silu(ctx, {}); }), "[silu] x is undefined, expected F32 or F64");
}

TEST(SoftCap, HasTheValuesAndGradientsOfItsDefinition) {
  Context ctx = Context::serial();
  const Tensor x = random_tensor({4, 5}, 1, -40, 40), y = soft_cap(ctx, x, 15).value();
  for (std::int64_t i = 0; i < x.numel(); ++i) EXPECT_NEAR(y.at(i), 15 * std::tanh(x.at(i) / 15), 1e-14);
  expect_gradients([](Context& c, const Variables& v) { return Variables{soft_cap(c, v[0], 15)}; }, {{"x", x}});
  EXPECT_EQ(error_of([&] { soft_cap(ctx, x, 0); }), "[soft_cap] cap = 0.000000, expected more than 0");
}

}  // namespace
}  // namespace stepwell
