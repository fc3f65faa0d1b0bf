// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/pooled_attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"

#include "ops/pooled_attention/reference.h"
#include "tests/autograd/random_tensor.h"

namespace stepwell::ops {
namespace {

PooledAttentionInputs made_up(std::int64_t rows, std::int64_t ages, std::int64_t width, std::int64_t heads, bool by_age,
                              bool weighted, DType dtype = DType::F64) {
  PooledAttentionInputs in;
  in.heads = heads;
  in.e = random_tensor({rows, width}, 1, -1, 1, dtype);
  in.q = random_tensor({rows, width}, 2, -2, 2, dtype);
  in.k = random_tensor({rows, width}, 3, -2, 2, dtype);
  in.v = random_tensor({rows, width}, 4, -1, 1, dtype);
  if (by_age) {
    in.age_e = random_tensor({ages, width}, 5, -1, 1, dtype);
    in.age_q = random_tensor({ages, width}, 6, -1, 1, dtype);
    in.age_k = random_tensor({ages, width}, 7, -1, 1, dtype);
    in.age_v = random_tensor({ages, width}, 8, -1, 1, dtype);
  }
  if (weighted) in.weight = random_tensor({ages}, 9, 0.1, 1, dtype);
  return in;
}

// Every prefix of `rows` rows, at most `ages` of them.
std::vector<RowWindow> prefixes(std::int64_t rows, std::int64_t ages) {
  std::vector<RowWindow> windows;
  for (std::int64_t t = 0; t < rows; ++t) {
    const std::int64_t begin = std::max<std::int64_t>(0, t + 1 - ages);
    windows.push_back({begin, t + 1 - begin});
  }
  return windows;
}

Tensor pooled(Context& ctx, const PooledAttentionInputs& in, const std::vector<RowWindow>& windows) {
  const Tensor z = Tensor::full({static_cast<std::int64_t>(windows.size()), in.e.size(1)},
                                std::numeric_limits<double>::quiet_NaN(), in.e.dtype());
  pooled_attention(ctx, in, windows, z);
  return z;
}

TEST(PooledAttention, EqualsTheReferenceForEveryShape) {
  Context ctx = Context::serial();
  struct Case {
    std::int64_t rows, ages, width, heads;
  };
  for (const auto& [rows, ages, width, heads] : std::vector<Case>{{1, 1, 1, 1},
                                                                  {7, 3, 5, 1},
                                                                  {40, 33, 24, 1},
                                                                  {37, 16, 16, 4},
                                                                  {20, 20, 33, 3},
                                                                  {5, 9, 12, 12},
                                                                  {3, 3, 0, 1}}) {
    for (const bool by_age : {false, true}) {
      for (const bool weighted : {false, true}) {
        const PooledAttentionInputs in = made_up(rows, ages, width, heads, by_age, weighted);
        const std::vector<RowWindow> windows = prefixes(rows, ages);
        const Tensor z = pooled(ctx, in, windows), expected = Tensor::empty(z.shape(), DType::F64);
        reference::pooled_attention(in, windows, expected);
        for (std::int64_t i = 0; i < z.numel(); ++i) {
          ASSERT_NEAR(z.at(i), expected.at(i), 1e-13) << rows << ", " << width << ", " << heads << ": " << i;
        }
      }
    }
  }
}

TEST(PooledAttention, BitsOfAWindowDependOnItAlone) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    const PooledAttentionInputs in = made_up(50, 20, 24, 2, true, true, dtype);
    const std::vector<RowWindow> windows = prefixes(50, 20);
    Context serial = Context::serial(), parallel = Context::parallel(3);
    const Tensor all = pooled(serial, in, windows);
    EXPECT_TRUE(pooled(parallel, in, windows).same_bits(all));
    for (const std::size_t i : {std::size_t{0}, std::size_t{6}, std::size_t{49}}) {
      EXPECT_TRUE(pooled(serial, in, {windows[i]}).same_bits(all.slice(0, static_cast<std::int64_t>(i), 1)));
    }
  }
}

TEST(PooledAttention, NoWindowsAndNoRows) {
  Context ctx = Context::serial();
  const PooledAttentionInputs in = made_up(4, 4, 3, 1, true, true);
  EXPECT_EQ(pooled(ctx, in, {}).numel(), 0);
  const Tensor nan = Tensor::full({4, 3}, std::nan(""), DType::F64);
  const PooledAttentionGradients g{nan.clone(), nan.clone(), nan.clone(), nan.clone(),
                                   nan.clone(), nan.clone(), nan.clone()};
  pooled_attention_backward(ctx, in, {}, Tensor::zeros({0, 3}, DType::F64), g);
  for (const Tensor* t : {&g.e, &g.q, &g.k, &g.v, &g.age_q, &g.age_k, &g.age_v}) EXPECT_EQ(t->at(11), 0);
}

TEST(PooledAttention, NamesWhatIsWrong) {
  Context ctx = Context::serial();
  const PooledAttentionInputs in = made_up(4, 3, 6, 1, true, false);
  for (const RowWindow& window : {RowWindow{0, 0}, RowWindow{0, 4}, RowWindow{2, 3}, RowWindow{-1, 2}}) {
    EXPECT_THROW(pooled(ctx, in, {window}), Error) << window.begin << ", " << window.length;
  }
  PooledAttentionInputs uneven = in;
  uneven.heads = 4;
  EXPECT_THROW(pooled(ctx, uneven, {{0, 1}}), Error);
  PooledAttentionInputs missing = in;
  missing.age_k = {};
  EXPECT_THROW(pooled(ctx, missing, {{0, 1}}), Error);
  const Tensor g = Tensor::empty({4, 6}, DType::F64), t = Tensor::empty({3, 6}, DType::F64);
  const std::vector<RowWindow> reversed = {{1, 1}, {0, 1}};
  EXPECT_THROW(pooled_attention_backward(ctx, in, reversed, Tensor::zeros({2, 6}, DType::F64), {g, g, g, g, t, t, t}),
               Error);
}

}  // namespace
}  // namespace stepwell::ops
