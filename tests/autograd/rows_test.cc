// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <gtest/gtest.h>

#include "tests/autograd/expect_gradients.h"

namespace stepwell {
namespace {

TEST(Reshape, KeepsMemoryAndGradients) {
  Context ctx = Context::serial();
  const Variable x = random_tensor({2, 6}, 1);
  EXPECT_TRUE(reshape(ctx, x, {3, 4}).value().shares_storage(x.value()));
  // A slice keeps its memory while its last extent stays, and is copied otherwise.
  const Variable slice = split2(ctx, Variable(random_tensor({2, 3, 6}, 2)), 4).first;
  EXPECT_TRUE(reshape(ctx, slice, {6, 4}).value().shares_storage(slice.value()));
  const Tensor copied = reshape(ctx, slice, {6, 2, 2}).value();
  EXPECT_FALSE(copied.shares_storage(slice.value()));
  for (std::int64_t i = 0; i < 24; ++i) EXPECT_EQ(copied.at(i), slice.value().at(i));
  // Rows that are not evenly spaced.
  const Variable uneven = random_tensor({3, 4, 2}, 3).slice(1, 1, 2);
  const Tensor flat = reshape(ctx, uneven, {6, 2}).value();
  for (std::int64_t i = 0; i < 12; ++i) EXPECT_EQ(flat.at(i), uneven.value().at(i));

  for (const Shape& to : {Shape{12}, Shape{3, 2, 2}, Shape{1, 12, 1}}) {
    expect_gradients(
        [to](Context& c, const Variables& v) {
          return Variables{reshape(c, v[0], to), reshape(c, split2(c, v[1], 3).first, {4, 3})};
        },
        {{"x", random_tensor({2, 6}, 1)}, {"sliced", random_tensor({4, 5}, 2)}});
  }
  EXPECT_EQ(error_of([&] { reshape(ctx, x, {5}); }), "[reshape] x [2, 6] to [5], expected as many elements");
}

TEST(Split, PartsAreViewsAndGradientsComeTogether) {
  Context ctx = Context::serial();
  const Variable x = random_tensor({2, 7}, 1);
  const std::array<std::int64_t, 4> widths = {2, 0, 4, 1};
  const std::vector<Variable> parts = split(ctx, x, widths);
  ASSERT_EQ(parts.size(), 4u);
  for (const Variable& part : parts) EXPECT_TRUE(part.value().shares_storage(x.value()));
  EXPECT_EQ(parts[2].value().at(5), x.value().at(10));

  const auto all = [&](Context& c, const Variables& v) { return split(c, v[0], widths); };
  const auto some = [&](Context& c, const Variables& v) { return Variables{split(c, v[0], widths)[2]}; };
  for (const Shape& shape : {Shape{7}, Shape{2, 7}, Shape{3, 1, 7}}) {
    expect_gradients(all, {{"x", random_tensor(shape, 1)}});
    expect_gradients(some, {{"x", random_tensor(shape, 1)}});  // zero where no gradient arrived
  }
  expect_gradients(all, {{"x", random_tensor({0, 7}, 1)}}, 0);
  expect_gradients(
      [](Context& c, const Variables& v) {
        const auto [a, b] = split2(c, v[0], 2);
        const auto [inner, rest] = split2(c, b, 1);  // a slice of a slice
        return Variables{a, rest, inner, inner};
      },
      {{"x", random_tensor({3, 5}, 1)}});
}

TEST(Split, NamesWhatIsWrong) {
  Context ctx = Context::serial();
  const Variable x = Tensor::zeros({2, 7});
  const std::array<std::int64_t, 2> few = {2, 4}, negative = {8, -1};
  EXPECT_EQ(error_of([&] { split(ctx, x, few); }), "[split] widths of 6 in all for x [2, 7], expected its last extent");
  EXPECT_EQ(error_of([&] { split(ctx, x, negative); }), "[split] width -1, expected ≥ 0");
  EXPECT_EQ(error_of([&] { split2(ctx, x, 8); }), "[split] width -1, expected ≥ 0");
}

TEST(Concat, UndoesSplit) {
  Context ctx = Context::serial();
  const Variable x = random_tensor({2, 3, 7}, 1);
  const std::array<std::int64_t, 3> widths = {2, 4, 1};
  EXPECT_TRUE(concat(ctx, split(ctx, x, widths)).value().same_bits(x.value()));
  expect_gradients(
      [](Context& c, const Variables& v) {
        const Variable part = split2(c, v[2], 1).second;
        return Variables{concat(c, std::array{v[0], v[1], v[0], part})};
      },
      {{"a", random_tensor({2, 3}, 1)}, {"b", random_tensor({2, 1}, 2)}, {"c", random_tensor({2, 5}, 3)}});
  EXPECT_EQ(error_of([&] { concat(ctx, std::array{x, Variable(Tensor::zeros({2, 3}, DType::F64))}); }),
            "[concat] parts [2, 3, 7] and [2, 3], expected shapes equal but for the last extent");
  EXPECT_EQ(error_of([&] { concat(ctx, {}); }), "[concat] no parts, expected at least one");
}

TEST(RepeatHeads, PutsCopiesSideBySideAndAddsTheirGradients) {
  Context ctx = Context::serial();
  const Tensor x = random_tensor({2, 3, 4}, 1);
  const Tensor y = repeat_heads(ctx, x, 2).value();
  ASSERT_EQ(y.shape(), Shape({2, 6, 4}));
  for (std::int64_t i = 0; i < y.numel(); ++i) EXPECT_EQ(y.at(i), x.at(i / 24 * 12 + i / 8 % 3 * 4 + i % 4)) << i;
  EXPECT_TRUE(repeat_heads(ctx, x, 1).value().shares_storage(x));
  for (const Shape& shape : {Shape{2, 3, 4}, {1, 1, 1}, {3, 2, 1}, {0, 2, 3}}) {
    expect_gradients([](Context& c, const Variables& v) { return Variables{repeat_heads(c, v[0], 3)}; },
                     {{"x", random_tensor(shape, 1)}}, 0);
  }
  expect_gradients(  // a slice
      [](Context& c, const Variables& v) {
        return Variables{repeat_heads(c, reshape(c, split2(c, v[0], 2).first, {2, 3, 2}), 2)};
      },
      {{"x", random_tensor({2, 3, 5}, 1)}});
  EXPECT_EQ(error_of([&] { repeat_heads(ctx, x, 0); }),
            "[repeat_heads] x [2, 3, 4] repeated 0 times, expected x [L, heads, width] and a count of at least 1");
}

TEST(TransposeLast2, SwapsAndHasItsOwnAdjoint) {
  Context ctx = Context::serial();
  const Tensor x = random_tensor({2, 3, 5}, 1), y = transpose_last2(ctx, x).value();
  for (int b = 0; b < 2; ++b) {
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 5; ++j) EXPECT_EQ(y.at((b * 5 + j) * 3 + i), x.at((b * 3 + i) * 5 + j));
    }
  }
  for (const Shape& shape : {Shape{2, 3}, Shape{1, 7, 1}, Shape{2, 2, 3, 5}, Shape{2, 0, 3}}) {
    expect_gradients([](Context& c, const Variables& v) { return Variables{transpose_last2(c, v[0])}; },
                     {{"x", random_tensor(shape, 1)}}, shape.size());
  }
}

TEST(GatherRows, TakesRowsAlsoTwice) {
  for (const Shape& shape : {Shape{5}, Shape{5, 1}, Shape{5, 3, 2}}) {
    expect_gradients(
        [](Context& c, const Variables& v) {
          return Variables{gather_rows(c, v[0], indices({4, 0, 4, 2}, {4})), gather_rows(c, v[0], indices({}, {0}))};
        },
        {{"x", random_tensor(shape, 1)}});
  }
  Context ctx = Context::serial();
  const Variable x = random_tensor({5, 3}, 1);
  EXPECT_EQ(error_of([&] { gather_rows(ctx, x, indices({1, 5}, {2})); }),
            "[gather_rows] index 5 at position 1, expected one in [0, 5)");
  EXPECT_EQ(error_of([&] { gather_rows(ctx, x, indices({-1}, {1})); }),
            "[gather_rows] index -1 at position 0, expected one in [0, 5)");
  EXPECT_EQ(error_of([&] { gather_rows(ctx, x, Tensor::zeros({1})); }),
            "[gather_rows] the tensor of index numbers is F32 [1], expected I64");
}

TEST(ScatterRows, UndoesGather) {
  Context ctx = Context::serial();
  const Tensor order = indices({3, 0, 2}, {3});
  const Variable x = random_tensor({3, 2}, 1), placed = scatter_rows(ctx, x, order, 5);
  EXPECT_TRUE(gather_rows(ctx, placed, order).value().same_bits(x.value()));
  for (const int i : {2, 3, 8, 9}) EXPECT_EQ(placed.value().at(i), 0);
  for (const Shape& shape : {Shape{3}, Shape{3, 1}, Shape{3, 2, 2}}) {
    expect_gradients([&](Context& c, const Variables& v) { return Variables{scatter_rows(c, v[0], order, 5)}; },
                     {{"x", random_tensor(shape, 1)}});
  }
  EXPECT_EQ(error_of([&] { scatter_rows(ctx, x, indices({3, 0, 3}, {3}), 5); }),
            "[scatter_rows] index 3 occurs twice, expected distinct ones");
  EXPECT_EQ(error_of([&] { scatter_rows(ctx, x, indices({3, 0}, {2}), 5); }),
            "[scatter_rows] 2 indices for x [3, 2] into 5 rows, expected one for each row of x");
}

TEST(Embedding, LooksUpAndAddsGradientsInTokenOrder) {
  Context ctx = Context::serial();
  const Tensor weight = random_tensor({7, 3}, 1), ids = indices({6, 0, 6, 6}, {2, 2});
  const Tensor rows = embedding(ctx, weight, ids).value();
  EXPECT_EQ(rows.shape(), (Shape{2, 2, 3}));
  for (int j = 0; j < 3; ++j) EXPECT_EQ(rows.at(6 + j), weight.at(18 + j));
  expect_gradients([&](Context& c, const Variables& v) { return Variables{embedding(c, v[0], ids)}; },
                   {{"weight", weight}});
  expect_gradients([](Context& c, const Variables& v) { return Variables{embedding(c, v[0], indices({}, {2, 0}))}; },
                   {{"weight", random_tensor({3, 2}, 1)}});
  EXPECT_EQ(error_of([&] { embedding(ctx, weight, indices({7}, {1})); }),
            "[embedding] id 7 at position 0, expected one in [0, 7)");
}

TEST(Embedding, SameBitsForEveryNumberOfThreads) {
  Tensor ids = Tensor::empty({900}, DType::I64);
  for (std::int64_t i = 0; i < 900; ++i) ids.data<std::int64_t>()[i] = i * i % 13;
  expect_same_bits([&](Context& c, const Variables& v) { return Variables{embedding(c, v[0], ids)}; },
                   {random_tensor({13, 300}, 1)});
}

}  // namespace
}  // namespace stepwell
