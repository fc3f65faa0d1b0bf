// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/softmax.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/tensor.h"

namespace stepwell {
namespace {

using Index = std::int64_t;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor uniform(const Shape& shape, double low, double high, unsigned number, DType dtype = DType::F64) {
  std::mt19937_64 generator(number);
  Tensor t = Tensor::empty(shape, DType::F64);
  for (double& v : t.span<double>()) v = low + (high - low) * static_cast<double>(generator() >> 11) * 0x1p-53;
  return t.to(dtype);
}
Tensor poisoned(const Shape& shape, DType dtype = DType::F64) { return Tensor::full(shape, kNaN, dtype); }

// Row r of softmax(x), in double.
std::vector<double> softmax_reference(const Tensor& x, Index r) {
  const Index width = x.size(-1);
  double largest = -kInfinity, sum = 0;
  for (Index i = 0; i < width; ++i) largest = std::max(largest, x.at(r * width + i));
  std::vector<double> y;
  for (Index i = 0; i < width; ++i) sum += y.emplace_back(std::exp(x.at(r * width + i) - largest));
  for (double& v : y) v /= sum;
  return y;
}

class Softmax : public testing::TestWithParam<DType> {
 protected:
  DType dtype = GetParam();
  double epsilon = dtype == DType::F32 ? 0x1p-23 : 0x1p-52;
  Context ctx = Context::serial();
};
INSTANTIATE_TEST_SUITE_P(Types, Softmax, testing::Values(DType::F32, DType::F64),
                         [](const auto& row) { return std::string(dtype_name(row.param)); });

const Shape kShapes[] = {{1, 1}, {3, 2}, {4, 7}, {2, 3, 16}, {5, 33}, {1, 1000}, {300, 67}, {0, 4}, {4, 0}, {9}};

TEST_P(Softmax, EqualsItsDefinition) {
  for (const Shape& shape : kShapes) {
    const Tensor x = uniform(shape, -9, 9, 1, dtype), y = poisoned(shape, dtype),
                 grad = uniform(shape, -1, 1, 2, dtype);
    const Tensor grad_x = poisoned(shape, dtype);
    ops::softmax(ctx, x, y);
    ops::softmax_backward(ctx, y, grad, grad_x);
    const Index width = shape[-1];
    for (Index r = 0; width > 0 && r < shape.rows(); ++r) {
      const auto want = softmax_reference(x, r);
      double mean = 0;
      for (Index i = 0; i < width; ++i) mean += want[static_cast<std::size_t>(i)] * grad.at(r * width + i);
      for (Index i = 0; i < width; ++i) {
        const double p = want[static_cast<std::size_t>(i)];
        // x − max x is rounded once: |x − max x|/2 ulp in the exponential.
        ASSERT_NEAR(y.at(r * width + i), p, 15 * epsilon * p) << shape.to_string() << r << i;
        ASSERT_NEAR(grad_x.at(r * width + i), p * (grad.at(r * width + i) - mean), 40 * epsilon * p)
            << shape.to_string();
      }
    }
  }
}

TEST_P(Softmax, SurvivesLargeAndInfiniteEntries) {
  const double huge = dtype == DType::F32 ? 3e38 : 1e308;
  const std::vector<std::vector<double>> rows = {
      {huge, huge, -huge}, {-kInfinity, 0, -kInfinity}, {-huge, -huge, -huge}, {1000, 0, -1000}};
  const std::vector<std::vector<double>> want = {{0.5, 0.5, 0}, {0, 1, 0}, {1 / 3.0, 1 / 3.0, 1 / 3.0}, {1, 0, 0}};
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Tensor x = Tensor::from<double>(rows[r], {3}).to(dtype), y = poisoned({3}, dtype);
    ops::softmax(ctx, x, y);
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(y.at(i), want[r][static_cast<std::size_t>(i)], epsilon) << r;
  }
  const Tensor x = Tensor::full({2, 5}, -kInfinity, dtype), y = poisoned({2, 5}, dtype);
  x.slice(0, 1, 1).fill(1);
  ops::softmax(ctx, x, y);
  EXPECT_TRUE(std::isnan(y.at(0)));
  EXPECT_NEAR(y.at(5), 0.2, epsilon) << "the other row's NaN";
}

TEST_P(Softmax, WorksInPlaceAndOnAnyNumberOfThreads) {
  const Tensor x = uniform({700, 131}, -9, 9, 3, dtype), y = poisoned(x.shape(), dtype), inplace = x.clone();
  ops::softmax(ctx, x, y);
  ops::softmax(ctx, inplace, inplace);
  EXPECT_TRUE(inplace.same_bits(y));
  for (const int threads : {2, 3}) {
    Context parallel = Context::parallel(threads);
    const Tensor again = poisoned(x.shape(), dtype);
    ops::softmax(parallel, x, again);
    EXPECT_TRUE(again.same_bits(y));
  }
  const Tensor row = poisoned({1, 131}, dtype);
  ops::softmax(ctx, x.slice(0, 699, 1), row);
  EXPECT_TRUE(row.same_bits(y.slice(0, 699, 1)));
}

TEST_P(Softmax, CrossEntropyAndItsGradient) {
  constexpr Index kIgnore = -100;
  for (const Index rows : {1, 2, 7, 300}) {
    for (const Index vocab : {1, 2, 17, 67, 259}) {
      const Tensor logits = uniform({rows, vocab}, -9, 9, 4, dtype), targets = Tensor::empty({rows}, DType::I64);
      for (Index r = 0; r < rows; ++r) targets.data<Index>()[r] = r % 5 == 3 ? kIgnore : r * 31 % vocab;
      const Tensor log_sums = poisoned({rows}, dtype), loss = poisoned({1}, dtype);
      const Tensor grad = poisoned({rows, vocab}, dtype), upstream = Tensor::full({1}, 3, dtype);
      ops::cross_entropy(ctx, logits, targets, kIgnore, log_sums, loss);
      ops::cross_entropy_backward(ctx, logits, targets, kIgnore, log_sums, upstream, grad);
      double total = 0;
      Index count = 0;
      for (Index r = 0; r < rows; ++r) count += r % 5 != 3;
      for (Index r = 0; r < rows; ++r) {
        const auto p = softmax_reference(logits, r);
        const Index target = targets.data<Index>()[r];
        if (target != kIgnore) total -= std::log(p[static_cast<std::size_t>(target)]);
        for (Index i = 0; i < vocab; ++i) {
          const double want =
              target == kIgnore ? 0 : (p[static_cast<std::size_t>(i)] - (i == target)) * 3 / static_cast<double>(count);
          ASSERT_NEAR(grad.at(r * vocab + i), want, 30 * epsilon / static_cast<double>(count)) << rows << "×" << vocab;
          if (target == kIgnore) {
            ASSERT_EQ(grad.at(r * vocab + i), 0);
          }
        }
      }
      ASSERT_NEAR(loss.at(0), total / static_cast<double>(count), 10 * epsilon * std::max(1.0, total))
          << rows << "×" << vocab;

      const Tensor shared = logits.clone();
      ops::cross_entropy_backward(ctx, shared, targets, kIgnore, log_sums, upstream, shared);
      ASSERT_TRUE(shared.same_bits(grad));
    }
  }
}

TEST_P(Softmax, CrossEntropyOfAConfidentRow) {
  // A loss of 9e−14, and a gradient that must keep its digits beside a logit of 30.
  const Tensor logits = Tensor::from<double>(std::vector<double>{30, 0}, {1, 2}).to(dtype);
  const Tensor targets = Tensor::zeros({1}, DType::I64), log_sums = poisoned({1}, dtype), loss = poisoned({1}, dtype);
  const Tensor grad = poisoned({1, 2}, dtype), one = Tensor::full({1}, 1, dtype);
  ops::cross_entropy(ctx, logits, targets, -1, log_sums, loss);
  EXPECT_NEAR(loss.at(0), std::log1p(std::exp(-30.0)), epsilon);
  ops::cross_entropy_backward(ctx, logits, targets, -1, log_sums, one, grad);
  EXPECT_NEAR(grad.at(1), 1 / (1 + std::exp(30.0)), 60 * epsilon * std::exp(-30.0));
}

TEST_P(Softmax, CrossEntropyWithoutCountedRowsIsZero) {
  const Tensor logits = uniform({3, 4}, -1, 1, 5, dtype), targets = Tensor::full({3}, 7, DType::I64);
  const Tensor log_sums = poisoned({3}, dtype), loss = poisoned({1}, dtype), grad = poisoned({3, 4}, dtype);
  ops::cross_entropy(ctx, logits, targets, 7, log_sums, loss);
  EXPECT_EQ(loss.at(0), 0);
  ops::cross_entropy_backward(ctx, logits, targets, 7, log_sums, loss, grad);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(grad.at(i), 0);
  const Tensor none = Tensor::zeros({0, 4}, dtype), nobody = Tensor::zeros({0}, DType::I64),
               empty = Tensor::zeros({0}, dtype);
  ops::cross_entropy(ctx, none, nobody, -100, empty, loss);
  EXPECT_EQ(loss.at(0), 0);
}

TEST_P(Softmax, WrongArgumentsAreErrors) {
  const Tensor logits = Tensor::zeros({2, 3}, dtype), sums = Tensor::zeros({2}, dtype),
               loss = Tensor::zeros({1}, dtype);
  const Tensor targets = Tensor::zeros({2}, DType::I64), outside = Tensor::full({2}, 3, DType::I64);
  const Tensor negative = Tensor::full({2}, -1, DType::I64);
  EXPECT_NO_THROW(ops::cross_entropy(ctx, logits, targets, -100, sums, loss));
  EXPECT_THROW(ops::cross_entropy(ctx, logits, outside, -100, sums, loss), Error);
  EXPECT_THROW(ops::cross_entropy(ctx, logits, negative, -100, sums, loss), Error);
  EXPECT_THROW(ops::cross_entropy(ctx, logits, targets.to(DType::I32), -100, sums, loss), Error);
  EXPECT_THROW(ops::cross_entropy(ctx, logits, targets, -100, loss, loss), Error);
  EXPECT_THROW(ops::cross_entropy(ctx, logits, targets, -100, sums, sums), Error);
  EXPECT_THROW(ops::cross_entropy(ctx, sums, targets, -100, sums, loss), Error);
  EXPECT_THROW(ops::cross_entropy_backward(ctx, logits, targets, -100, sums, loss, sums), Error);
  EXPECT_THROW(ops::softmax(ctx, logits, sums), Error);
  EXPECT_THROW(ops::softmax(ctx, Tensor::zeros({}, dtype), Tensor::zeros({}, dtype)), Error);
  EXPECT_THROW(ops::softmax_backward(ctx, logits, sums, logits), Error);
}

}  // namespace
}  // namespace stepwell
