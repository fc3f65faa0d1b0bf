// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/autograd/gradcheck.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/autograd/random_tensor.h"

namespace stepwell {
namespace {

// y = x², recorded with the adjoint `factor`·x·g: right for factor 2.
Variable square(const Variable& x, double factor) {
  const Tensor y = x.value().clone();
  for (double& v : y.span<double>()) v *= v;
  if (!recording({&x})) return y;
  return record(y, {x}, [x = x.value(), factor](Backward& b) {
    const Tensor g = b.grad().clone();
    for (std::int64_t i = 0; i < g.numel(); ++i) g.data<double>()[i] *= factor * x.at(i);
    b.give(0, g);
  });
}

GradcheckResult check(double factor, const Tensor& x, std::int64_t limit = 0) {
  Context ctx = Context::serial();
  return gradcheck(
      ctx, [factor](const std::vector<Variable>& v) { return std::vector<Variable>{square(v[0], factor)}; }, {{"x", x}},
      limit);
}

TEST(Gradcheck, PassesARightAdjointAndFailsAWrongOne) {
  const Tensor x = random_tensor({3, 5}, 1, -3, 3);
  const GradcheckResult right = check(2, x);
  EXPECT_TRUE(right.passed) << right.to_string();
  EXPECT_EQ(right.checked, 15);
  for (const double factor : {0.0, -2.0, 1.0, 2.0001}) {
    const GradcheckResult wrong = check(factor, x);
    EXPECT_FALSE(wrong.passed) << factor;
    EXPECT_GT(wrong.worst, 1) << factor;
    EXPECT_EQ(wrong.worst_input, "x");
  }
}

TEST(Gradcheck, FailsWhereAGradientIsLost) {
  Context ctx = Context::serial();
  const GradcheckResult lost = gradcheck(
      ctx,
      [](const std::vector<Variable>& v) { return std::vector<Variable>{square(v[0], 2), square(v[1].detach(), 2)}; },
      {{"kept", random_tensor({2}, 1)}, {"lost", random_tensor({2}, 2)}});
  EXPECT_FALSE(lost.passed);
  EXPECT_EQ(lost.worst_input, "lost");
  EXPECT_EQ(lost.analytic, 0);
}

TEST(Gradcheck, ANaNFails) {
  const GradcheckResult bad = check(std::numeric_limits<double>::quiet_NaN(), random_tensor({4}, 1));
  EXPECT_FALSE(bad.passed);
  EXPECT_TRUE(std::isnan(bad.worst));
}

TEST(Gradcheck, ChecksAsManyElementsAsAsked) {
  EXPECT_EQ(check(2, random_tensor({101}, 1), 7).checked, 7);
  EXPECT_EQ(check(2, random_tensor({3}, 1), 7).checked, 3);
  const GradcheckResult none = check(2, Tensor::zeros({0}, DType::F64));
  EXPECT_EQ(none.checked, 0);
  EXPECT_EQ(none.to_string(), "no elements to compare");
}

TEST(Gradcheck, LeavesTheInputsAlone) {
  const Tensor x = random_tensor({5}, 1), before = x.clone();
  check(2, x);
  EXPECT_TRUE(x.same_bits(before));
  EXPECT_THROW(check(2, Tensor::zeros({2})), Error);  // F32
}

}  // namespace
}  // namespace stepwell
