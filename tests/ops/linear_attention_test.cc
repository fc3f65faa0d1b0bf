// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/linear_attention.h"

#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/ops/rows.h"

namespace stepwell::ops {
namespace {

using testing::expect_finite_differences;
using testing::Rows;

template <class T>
struct AttentionCase {
  std::vector<std::int64_t> offsets{0};
  std::int64_t H, K, V;
  Rows<T> q, k, v, decay, state, grad_y, grad_state;

  AttentionCase(const std::vector<std::int64_t>& lengths, std::int64_t H, std::int64_t K, std::int64_t V)
      : H(H), K(K), V(V) {
    for (auto length : lengths) offsets.push_back(offsets.back() + length);
    const std::int64_t L = offsets.back(), S = static_cast<std::int64_t>(lengths.size());
    std::mt19937_64 engine(7);
    std::normal_distribution<double> normal;
    const auto rows = [&](std::int64_t I, std::int64_t J, std::int64_t last) {
      Rows<T> r(I, J, last);
      r.fill([&](std::int64_t) { return static_cast<float>(normal(engine)); });
      return r;
    };
    q = rows(L, H, K);
    k = rows(L, H, K);
    v = rows(L, H, V);
    state = rows(S * H, K, V);
    grad_y = rows(L, H, V);
    grad_state = rows(S * H, K, V);
    decay = Rows<T>(1, H);
    decay.fill([](std::int64_t h) { return 1 - 0.25 * static_cast<double>(h); });
  }
  LinearAttentionInputs<T> inputs() { return {q.view3(), k.view3(), v.view3(), decay.data(), T(0.5)}; }
  Segments segments() const { return Segments::from_offsets(offsets, offsets.back()); }
};

double loss(AttentionCase<double>& c) {
  Context ctx = Context::serial();
  Rows<double> y(c.offsets.back(), c.H, c.V), state = c.state;
  linear_attention<double>(ctx, c.inputs(), c.segments(), state.view3(), y.view3());
  double sum = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) sum += y[i] * c.grad_y[i];
  for (std::int64_t i = 0; i < state.size(); ++i) sum += state[i] * c.grad_state[i];
  return sum;
}

void expect_gradients(AttentionCase<double> c) {
  Context ctx = Context::serial();
  Rows<double> q = c.q, k = c.k, v = c.v, state = c.state;
  linear_attention_backward<double>(ctx, c.inputs(), c.segments(), c.state.view3(), c.grad_y.view3(),
                                    c.grad_state.view3(), {q.view3(), k.view3(), v.view3(), state.view3()});
  const auto check = [&](const char* name, Rows<double>& input, const Rows<double>& gradient) {
    expect_finite_differences(name, input, gradient, [&] { return loss(c); });
  };
  check("q", c.q, q);
  check("k", c.k, k);
  check("v", c.v, v);
  check("state", c.state, state);
}

TEST(LinearAttentionBackward, AgreesWithFiniteDifferencesForEveryInput) {
  expect_gradients({{7}, 2, 3, 4});
  expect_gradients({{2, 0, 5}, 5, 1, 3});
  expect_gradients({{3}, 1, 4, 1});
}

}  // namespace
}  // namespace stepwell::ops
