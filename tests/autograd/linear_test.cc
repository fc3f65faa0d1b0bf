// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/autograd/expect_gradients.h"

namespace stepwell {
namespace {

struct LinearShape {
  Shape x;
  std::int64_t out;
};

class LinearShapes : public testing::TestWithParam<LinearShape> {
 protected:
  const Shape x_shape = GetParam().x;
  const std::int64_t in = x_shape[-1], out = GetParam().out;
};

TEST_P(LinearShapes, HasTheGradientsOfItsDefinition) {
  expect_gradients(
      [](Context& ctx, const Variables& v) { return Variables{linear(ctx, v[0], v[1], v[2])}; },
      {{"x", random_tensor(x_shape, 1)}, {"weight", random_tensor({out, in}, 2)}, {"bias", random_tensor({out}, 3)}},
      0);
  expect_gradients([](Context& ctx, const Variables& v) { return Variables{linear(ctx, v[0], v[1])}; },
                   {{"x", random_tensor(x_shape, 1)}, {"weight", random_tensor({out, in}, 2)}}, 0);
}

TEST_P(LinearShapes, HasTheValuesOfItsDefinition) {
  Context ctx = Context::serial();
  const Tensor x = random_tensor(x_shape, 1), w = random_tensor({out, in}, 2), b = random_tensor({out}, 3);
  const Tensor y = linear(ctx, x, w, Variable(b)).value();
  Shape expected = x_shape;
  expected[-1] = out;
  EXPECT_EQ(y.shape(), expected);
  const ops::PackedMatrix packed = ops::PackedMatrix::pack<double>(ctx, ops::Product::ABt, w.view<const double, 2>());
  EXPECT_TRUE(linear(ctx, x, w, Variable(b), &packed).value().same_bits(y));
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const std::int64_t row = i / out, o = i % out;
    double sum = b.at(o);
    for (std::int64_t k = 0; k < in; ++k) sum += x.at(row * in + k) * w.at(o * in + k);
    EXPECT_NEAR(y.at(i), sum, 1e-14 * static_cast<double>(in + 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Linear, LinearShapes,
                         testing::Values(LinearShape{{2, 3}, 5}, LinearShape{{2, 3, 7}, 1}, LinearShape{{4}, 3},
                                         LinearShape{{0, 3}, 2}, LinearShape{{3, 0}, 2}, LinearShape{{2, 3}, 0},
                                         LinearShape{{1, 1}, 1}, LinearShape{{13, 17}, 11}));

TEST(Linear, TakesSlicesAndSharedVariables) {
  expect_gradients(
      [](Context& ctx, const Variables& v) {
        const auto [a, b] = split2(ctx, v[0], 3);
        return Variables{linear(ctx, a, v[1]), linear(ctx, b, v[1])};
      },
      {{"x", random_tensor({2, 5, 6}, 1)}, {"weight", random_tensor({4, 3}, 2)}});
  // One matrix as input and as weight.
  expect_gradients([](Context& ctx, const Variables& v) { return Variables{linear(ctx, v[0], v[0])}; },
                   {{"w", random_tensor({3, 3}, 1)}});
}

TEST(Linear, ConstantsStayOutOfTheGraph) {
  Context ctx = Context::serial();
  const Variable x = random_tensor({2, 3}, 1), w = Variable::leaf(random_tensor({4, 3}, 2));
  const Variable y = linear(ctx, x, w);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_TRUE(w.value().is_unique()) << "the weight is kept though x needs no gradient";
  EXPECT_FALSE(linear(ctx, x, w.detach()).requires_grad());
}

TEST(Linear, SameBitsForEveryNumberOfThreads) {
  expect_same_bits([](Context& ctx, const Variables& v) { return Variables{linear(ctx, v[0], v[1], v[2])}; },
                   {random_tensor({600, 37}, 1), random_tensor({53, 37}, 2), random_tensor({53}, 3)});
}

TEST(Linear, NamesWhatIsWrong) {
  Context ctx = Context::serial();
  const auto message = [&](const Variable& x, const Variable& w, const Variable& b) {
    return error_of([&] { linear(ctx, x, w, b); });
  };
  const Variable x = Tensor::zeros({2, 3});
  EXPECT_EQ(message(x, Tensor::zeros({4, 5}), {}),
            "[linear] x [2, 3] and weight [4, 5], expected x [..., in] and weight [out, in]");
  EXPECT_EQ(message(x, Tensor::zeros({4, 3}), Tensor::zeros({3})), "[linear] bias is [3], expected [4]");
  EXPECT_EQ(message(x, Tensor::zeros({4, 3}, DType::F64), {}),
            "[linear] weight is F64 [4, 3], x is F32 [2, 3]; expected the same dtype");
  EXPECT_EQ(message(Tensor::zeros({2}, DType::I64), {}, {}), "[linear] x is I64 [2], expected F32 or F64");
  EXPECT_EQ(message({}, {}, {}), "[linear] x is undefined, expected F32 or F64");
  EXPECT_EQ(message(x, {}, {}), "[linear] x [2, 3] and weight [], expected x [..., in] and weight [out, in]");
}

TEST(HeadwiseLinear, HasTheGradientsOfItsDefinition) {
  for (const auto& [G, out, in] : {std::array<std::int64_t, 3>{3, 4, 4}, {2, 3, 5}, {1, 2, 2}, {5, 1, 1}, {2, 0, 3}}) {
    const std::vector<GradcheckInput> inputs = {{"x", random_tensor({2, 3, G * in}, 1)},
                                                {"weight", random_tensor({G, out, in}, 2)},
                                                {"bias", random_tensor({G * out}, 3)}};
    expect_gradients([](Context& ctx, const Variables& v) { return Variables{headwise_linear(ctx, v[0], v[1], v[2])}; },
                     inputs, 0);
    expect_gradients([](Context& ctx, const Variables& v) { return Variables{headwise_linear(ctx, v[0], v[1])}; },
                     {inputs[0], inputs[1]}, 0);
  }
  // Half of the features, rows apart.
  expect_gradients(
      [](Context& ctx, const Variables& v) {
        const auto [a, b] = split2(ctx, v[0], 8);
        return Variables{headwise_linear(ctx, a, v[1]), headwise_linear(ctx, b, v[1])};
      },
      {{"x", random_tensor({5, 16}, 1)}, {"weight", random_tensor({2, 4, 4}, 2)}});
}

TEST(HeadwiseLinear, NamesWhatIsWrong) {
  Context ctx = Context::serial();
  EXPECT_EQ(
      error_of([&] { headwise_linear(ctx, Tensor::zeros({2, 7}), Tensor::zeros({2, 4, 4})); }),
      "[headwise_linear] x [2, 7] and weight [2, 4, 4], expected x [..., groups·in] and weight [groups, out, in]");
}

TEST(Matmul, HasTheGradientsOfItsDefinition) {
  using ops::Product;
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{2, 3, 5}, {1, 1, 1}, {7, 1, 3}, {0, 2, 3}, {2, 3, 0}}) {
    for (const Product product : {Product::AB, Product::ABt, Product::AtB}) {
      const Shape a = product == Product::AtB ? Shape{k, m} : Shape{m, k};
      const Shape b = product == Product::ABt ? Shape{n, k} : Shape{k, n};
      expect_gradients(
          [product](Context& ctx, const Variables& v) { return Variables{matmul(ctx, v[0], v[1], product)}; },
          {{"a", random_tensor(a, 1)}, {"b", random_tensor(b, 2)}}, 0);
    }
  }
}

TEST(Matmul, OfAMatrixWithItself) {
  expect_gradients(
      [](Context& ctx, const Variables& v) { return Variables{matmul(ctx, v[0], v[0], ops::Product::AtB)}; },
      {{"a", random_tensor({5, 3}, 1)}});
}

TEST(Matmul, NamesWhatIsWrong) {
  Context ctx = Context::serial();
  EXPECT_EQ(error_of([&] { matmul(ctx, Tensor::zeros({2, 3}), Tensor::zeros({2, 3})); }),
            "[matmul] a [2, 3] and b [2, 3], expected two matrices with equal inner extents");
}

}  // namespace
}  // namespace stepwell
