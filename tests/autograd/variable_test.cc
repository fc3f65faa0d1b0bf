// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/autograd/variable.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/autograd/functions.h"

#include "tests/autograd/random_tensor.h"

namespace stepwell {
namespace {

// y = x recorded by hand, so that these tests rest on the tape alone.
Variable link(const Variable& x) {
  return record(x.value(), {x}, [](Backward& b) { b.give(0, b.grad()); });
}

// y = a + b, likewise; the values do not matter here.
Variable join(const Variable& a, const Variable& b) {
  return record(a.value(), {a, b}, [](Backward& back) {
    back.give(0, back.grad());
    back.give(1, back.grad());
  });
}

TEST(Variable, ConstantsAndLeaves) {
  EXPECT_FALSE(Variable().defined());
  EXPECT_FALSE(Variable(Tensor::zeros({2})).requires_grad());
  const Variable leaf = Variable::leaf(Tensor::zeros({2}));
  EXPECT_TRUE(leaf.requires_grad());
  EXPECT_FALSE(leaf.detach().requires_grad());
  EXPECT_THROW(Variable::leaf(Tensor::zeros({2}, DType::I64)), Error);
}

TEST(Variable, NoGradNestsAndRecordsNothing) {
  Context ctx = Context::serial();
  const Variable leaf = Variable::leaf(Tensor::zeros({2, 3}));
  EXPECT_TRUE(recording({&leaf}));
  {
    NoGrad outer;
    {
      NoGrad inner;
      EXPECT_FALSE(grad_enabled());
    }
    EXPECT_FALSE(grad_enabled());
    EXPECT_FALSE(recording({&leaf}));
    EXPECT_FALSE(reshape(ctx, leaf, {6}).requires_grad());
  }
  EXPECT_TRUE(grad_enabled());
}

TEST(Variable, SharedUseAddsUp) {
  Context ctx = Context::serial();
  const Variable x = Variable::leaf(Tensor::full({3}, 2.0)), untouched = Variable::leaf(Tensor::zeros({3}));
  const Variable once = link(x), twice = join(once, once), y = join(twice, x);  // d y / d x = 3
  const Tensor ones = Tensor::full({3}, 1.0);
  const Gradients g = backward(ctx, std::span(&y, 1), std::span(&ones, 1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(g.of(x).at(i), 3.0);
  EXPECT_FALSE(g.of(untouched).defined());
  // Accumulation never writes into the caller's cotangent, and the graph can be walked again.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ones.at(i), 1.0);
  EXPECT_TRUE(backward(ctx, std::span(&y, 1), std::span(&ones, 1)).of(x).same_bits(g.of(x)));
}

TEST(Variable, OneLeafAsOutputOfItself) {
  Context ctx = Context::serial();
  const Variable x = Variable::leaf(Tensor::full({2}, 5.0));
  const std::array<Variable, 3> outputs = {x, x, Variable(Tensor::zeros({2}))};
  const Tensor c = Tensor::full({2}, 1.5);
  const std::array<Tensor, 3> cotangents = {c, c, c};
  const Gradients g = backward(ctx, outputs, cotangents);
  EXPECT_EQ(g.of(x).at(0), 3.0);
  EXPECT_EQ(c.at(0), 1.5);
}

TEST(Variable, OutputsWithoutAGradientAreSeenAsUndefined) {
  Context ctx = Context::serial();
  const Variable x = Variable::leaf(Tensor::full({1}, 1.0));
  const std::array<Tensor, 2> values = {x.value(), x.value()};
  bool first = true, second = false;
  const std::vector<Variable> both = record(values, std::span(&x, 1), [&](Backward& b) {
    first = b.grad(0).defined();
    second = b.grad(1).defined();
    b.give(0, b.grad(1));
  });
  EXPECT_EQ(backward(ctx, both[1]).of(x).at(0), 1.0);
  EXPECT_FALSE(first);
  EXPECT_TRUE(second);
}

TEST(Variable, ConstantsAreNotWanted) {
  Context ctx = Context::serial();
  const Variable x = Variable::leaf(Tensor::full({1}, 1.0)), c = Variable(Tensor::full({1}, 1.0));
  bool wants_x = false, wants_c = true;
  const Variable y = record(x.value(), {x, c}, [&](Backward& b) {
    wants_x = b.wants(0);
    wants_c = b.wants(1);
    b.give(0, b.grad());
    b.give(1, b.grad());  // ignored
  });
  EXPECT_EQ(backward(ctx, y).of(x).at(0), 1.0);
  EXPECT_TRUE(wants_x);
  EXPECT_FALSE(wants_c);
}

TEST(Variable, DeepChainsAreWalkedAndDestroyedWithoutRecursion) {
  Context ctx = Context::serial();
  const Variable x = Variable::leaf(Tensor::full({1}, 1.0));
  {
    Variable y = x;
    for (int i = 0; i < 100000; ++i) y = link(y);
    EXPECT_EQ(backward(ctx, y).of(x).at(0), 1.0);
  }
  // Two edges from every node to the one before it.
  Variable y = x;
  for (int i = 0; i < 100000; ++i) y = join(y, y);
}

TEST(Variable, MistakesAreNamed) {
  Context ctx = Context::serial();
  const Variable x = Variable::leaf(Tensor::zeros({2})), y = link(x);
  EXPECT_THROW(backward(ctx, y), Error);  // not one element
  const Tensor wrong = Tensor::zeros({3});
  EXPECT_THROW(backward(ctx, std::span(&y, 1), std::span(&wrong, 1)), Error);
  const Variable z = record(Tensor::zeros({1}), {x}, [](Backward& b) { b.give(0, Tensor::zeros({5})); });
  try {
    backward(ctx, z);
    ADD_FAILURE() << "a gradient of the wrong shape went through";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[backward] gradient [5] for a value [2]");
  }
}

TEST(Variable, SavedValuesAreFreedWithTheGraph) {
  const Tensor value = Tensor::zeros({4});
  EXPECT_TRUE(value.is_unique());
  {
    const Variable x = Variable::leaf(Tensor::zeros({4}));
    const Variable y = record(x.value(), {x}, [value](Backward&) {});
    EXPECT_FALSE(value.is_unique());
  }
  EXPECT_TRUE(value.is_unique());
}

}  // namespace
}  // namespace stepwell
