// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/pooled_attention.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/autograd/expect_gradients.h"

namespace stepwell {
namespace {

// e, q, k, v and, if there are seven, the tables by age.
Variables attend(Context& ctx, const Variables& v, std::int64_t heads, const Tensor& age_e, const Tensor& weight,
                 const std::vector<ops::RowWindow>& windows) {
  PooledAttentionArguments in;
  in.e = v[0];
  in.q = v[1];
  in.k = v[2];
  in.v = v[3];
  in.weight = weight;
  in.heads = heads;
  if (v.size() == 7) {
    in.age_e = age_e;
    in.age_q = v[4];
    in.age_k = v[5];
    in.age_v = v[6];
  }
  return {pooled_attention(ctx, in, windows)};
}

TEST(PooledAttention, HasTheGradientsOfItsDefinition) {
  const std::vector<ops::RowWindow> windows = {{0, 1}, {0, 4}, {1, 3}, {4, 2}, {4, 5}};
  for (const std::int64_t heads : {1, 3}) {
    for (const bool by_age : {false, true}) {
      std::vector<GradcheckInput> inputs;
      for (const char* name : {"e", "q", "k", "v"}) {
        inputs.push_back({name, random_tensor({10, 6}, 10 + inputs.size(), -1, 1)});
      }
      if (by_age) {
        for (const char* name : {"age_q", "age_k", "age_v"}) {
          inputs.push_back({name, random_tensor({5, 6}, 10 + inputs.size(), -1, 1)});
        }
      }
      const Tensor age_e = random_tensor({5, 6}, 30, -1, 1);
      for (const Tensor& weight : {Tensor(), random_tensor({5}, 31, 0.2, 1)}) {
        expect_gradients(
            [&](Context& ctx, const Variables& v) { return attend(ctx, v, heads, age_e, weight, windows); }, inputs,
            240);
      }
    }
  }
}

TEST(PooledAttention, SameBitsForEveryNumberOfThreads) {
  std::vector<ops::RowWindow> windows;
  for (std::int64_t s = 0; s < 40; ++s) {
    windows.push_back({20 * s, 17});
    windows.push_back({20 * s, 18});
  }
  std::vector<Tensor> inputs;
  for (std::uint64_t i = 0; i < 4; ++i) inputs.push_back(random_tensor({800, 24}, i, -1, 1));
  expect_same_bits([&](Context& ctx, const Variables& v) { return attend(ctx, v, 2, {}, {}, windows); }, inputs);
  for (std::uint64_t i = 4; i < 7; ++i) inputs.push_back(random_tensor({18, 24}, i, -1, 1));
  expect_same_bits(
      [&](Context& ctx, const Variables& v) {
        return attend(ctx, v, 2, Tensor::zeros({18, 24}, v[0].dtype()), {}, windows);
      },
      inputs);
}

}  // namespace
}  // namespace stepwell
