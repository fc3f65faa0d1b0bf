// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/short_conv.h"

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
struct ConvCase {
  std::vector<std::int64_t> offsets{0};
  std::int64_t D, K;
  Activation activation;
  Rows<T> x, weight, bias, state, grad_y, grad_state;

  ConvCase(const std::vector<std::int64_t>& lengths, std::int64_t D, std::int64_t K,
           Activation activation = Activation::Silu, bool with_bias = true)
      : D(D), K(K), activation(activation) {
    for (auto length : lengths) offsets.push_back(offsets.back() + length);
    const std::int64_t L = offsets.back(), S = static_cast<std::int64_t>(lengths.size());
    std::mt19937_64 engine(7);
    std::normal_distribution<double> normal;
    const auto rows = [&](std::int64_t I, std::int64_t J, std::int64_t last = 1) {
      Rows<T> r(I, J, last);
      r.fill([&](std::int64_t) { return static_cast<float>(normal(engine)); });
      return r;
    };
    x = rows(L, D);
    weight = rows(D, K);
    if (with_bias) bias = rows(1, D);
    state = rows(S, K, D);
    grad_y = rows(L, D);
    grad_state = rows(S, K, D);
  }
  ShortConvInputs<T> inputs() { return {x.view2(), weight.view2(), bias ? bias.data() : nullptr, activation}; }
  Segments segments() const { return Segments::from_offsets(offsets, offsets.back()); }
};

double loss(ConvCase<double>& c) {
  Context ctx = Context::serial();
  Rows<double> y(c.offsets.back(), c.D), state = c.state;
  short_conv<double>(ctx, c.inputs(), c.segments(), state.view3(), y.view2());
  double sum = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) sum += y[i] * c.grad_y[i];
  for (std::int64_t i = 0; i < state.size(); ++i) sum += state[i] * c.grad_state[i];
  return sum;
}

void expect_gradients(ConvCase<double> c) {
  Context ctx = Context::serial();
  Rows<double> x(c.offsets.back(), c.D), weight(c.D, c.K), bias(1, c.D), state = c.state;
  short_conv_backward<double>(ctx, c.inputs(), c.segments(), c.state.view3(), c.grad_y.view2(), c.grad_state.view3(),
                              {x.view2(), weight.view2(), bias.data(), state.view3()});
  const auto check = [&](const char* name, Rows<double>& input, const Rows<double>& gradient) {
    expect_finite_differences(name, input, gradient, [&] { return loss(c); });
  };
  check("x", c.x, x);
  check("weight", c.weight, weight);
  if (c.bias) check("bias", c.bias, bias);
  check("state", c.state, state);
}

TEST(ShortConvBackward, AgreesWithFiniteDifferencesForEveryInput) {
  expect_gradients({{7}, 3, 4});
  expect_gradients({{2, 0, 5}, 5, 4});  // shorter than the kernel, and empty
  expect_gradients({{3}, 2, 1});
  expect_gradients({{1, 4}, 1, 8, Activation::None, false});
}

}  // namespace
}  // namespace stepwell::ops
