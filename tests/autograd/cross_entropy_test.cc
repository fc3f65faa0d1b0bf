// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/autograd/expect_gradients.h"

namespace stepwell {
namespace {

TEST(CrossEntropy, HasTheValueAndGradientOfItsDefinition) {
  Context ctx = Context::serial();
  struct Case {
    std::int64_t vocab;
    std::vector<std::int64_t> targets;
  };
  const std::vector<Case> cases = {{5, {0, 4, 2}},        {5, {-100, 4, -100}}, {1, {0, 0}}, {7, {6}},
                                   {257, {256, 0, 3, 3}}, {3, {-100}},          {3, {}}};
  for (const auto& [vocab, entries] : cases) {
    const auto rows = static_cast<std::int64_t>(entries.size());
    const Tensor logits = random_tensor({rows, vocab}, 1, -3, 3), targets = Tensor::from<std::int64_t>(entries, {rows});
    double total = 0, kept = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t target = entries[static_cast<std::size_t>(i)];
      if (target == -100) continue;
      double norm = 0;
      for (std::int64_t j = 0; j < vocab; ++j) norm += std::exp(logits.at(i * vocab + j));
      total += std::log(norm) - logits.at(i * vocab + target);
      kept += 1;
    }
    EXPECT_NEAR(cross_entropy(ctx, logits, targets).value().at(0), kept > 0 ? total / kept : 0.0, 1e-13);
    expect_gradients([&](Context& c, const Variables& v) { return Variables{cross_entropy(c, v[0], targets)}; },
                     {{"logits", logits}}, logits.numel());
  }
}

TEST(CrossEntropy, NothingLeftGivesZeroAndNoGradient) {
  Context ctx = Context::serial();
  const Variable logits = Variable::leaf(random_tensor({2, 3}, 1));
  const Variable loss = cross_entropy(ctx, logits, indices({7, 7}, {2}), 7);
  EXPECT_EQ(loss.value().at(0), 0);
  const Tensor gradient = backward(ctx, loss).of(logits);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(gradient.at(i), 0);
}

TEST(CrossEntropy, NamesWhatIsWrong) {
  Context ctx = Context::serial();
  const Variable logits = Tensor::zeros({2, 3});
  for (const std::int64_t target : {3, -1}) {
    const std::string message = error_of([&] { cross_entropy(ctx, logits, indices({0, target}, {2})); });
    EXPECT_NE(message.find("[cross_entropy]"), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(target)), std::string::npos) << message;
  }
  EXPECT_EQ(error_of([&] { cross_entropy(ctx, logits, indices({0}, {1})); }),
            "[cross_entropy] logits [2, 3] and targets I64 [1], expected logits [rows, vocab] and targets I64 [rows]");
  EXPECT_EQ(
      error_of([&] { cross_entropy(ctx, logits, {}); }),
      "[cross_entropy] logits [2, 3] and targets undefined, expected logits [rows, vocab] and targets I64 [rows]");
}

TEST(CrossEntropy, SameBitsForEveryNumberOfThreads) {
  Tensor targets = Tensor::empty({700}, DType::I64);
  for (std::int64_t i = 0; i < 700; ++i) targets.data<std::int64_t>()[i] = i % 78 == 77 ? -100 : i % 78;
  expect_same_bits([&](Context& ctx, const Variables& v) { return Variables{cross_entropy(ctx, v[0], targets)}; },
                   {random_tensor({700, 77}, 1)});
}

}  // namespace
}  // namespace stepwell
