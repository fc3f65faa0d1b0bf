// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/headwise.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/ops/matmul.h"
#include "stepwell/simd/isa.h"

#include "tests/ops/rows.h"

namespace stepwell::ops {
namespace {

using testing::expect_same_bits;
using testing::Rows;

template <class T>
Rows<T> random_rows(std::int64_t I, std::int64_t J, std::int64_t K, std::int64_t gap, unsigned number) {
  std::mt19937_64 engine(number);
  std::normal_distribution<double> normal;
  Rows<T> r(I, J, K, gap);
  r.fill([&](std::int64_t) { return static_cast<float>(normal(engine)); });
  return r;
}

struct Sizes {
  std::int64_t L, G, out, in;
};

// Every group through matmul: what the order of sums is defined by.
template <class T>
void expect_equals_matmul(const Sizes& s, const std::string& what) {
  SCOPED_TRACE(what + " L " + std::to_string(s.L) + " G " + std::to_string(s.G) + " out " + std::to_string(s.out) +
               " in " + std::to_string(s.in));
  Rows<T> x = random_rows<T>(s.L, s.G * s.in, 1, 5, 1), weight = random_rows<T>(s.G, s.out, s.in, 0, 2),
          bias = random_rows<T>(1, s.G * s.out, 1, 0, 3), g = random_rows<T>(s.L, s.G * s.out, 1, 2, 4);
  Context ctx = Context::serial();
  Rows<T> y(s.L, s.G * s.out), y_expected = y, grad_x(s.L, s.G * s.in), grad_x_expected = grad_x,
                               grad_weight(s.G, s.out, s.in, 0), grad_weight_expected = grad_weight;
  const auto columns = [](auto view, std::int64_t first, std::int64_t width) {
    view.data += first;
    view.extent[1] = width;
    return view;
  };
  for (std::int64_t j = 0; j < s.G; ++j) {
    const auto block = View<const T, 2>::contiguous(weight.view3().row(j), {s.out, s.in});
    matmul<T>(ctx, Product::ABt, columns(x.view2(), j * s.in, s.in), block,
              columns(y_expected.view2(), j * s.out, s.out), {.bias = bias.data() + j * s.out});
    matmul<T>(ctx, Product::AB, columns(g.view2(), j * s.out, s.out), block,
              columns(grad_x_expected.view2(), j * s.in, s.in));
    matmul<T>(ctx, Product::AtB, columns(g.view2(), j * s.out, s.out), columns(x.view2(), j * s.in, s.in),
              View<T, 2>::contiguous(grad_weight_expected.view3().row(j), {s.out, s.in}));
  }
  headwise_linear<T>(ctx, x.view2(), weight.view3(), bias.data(), y.view2());
  View<const T, 3> transposed = weight.view3();
  std::swap(transposed.extent[1], transposed.extent[2]);
  std::swap(transposed.stride[1], transposed.stride[2]);
  headwise_linear<T>(ctx, g.view2(), transposed, nullptr, grad_x.view2());
  headwise_weight_gradient<T>(ctx, g.view2(), x.view2(), grad_weight.view3());
  expect_same_bits(y, y_expected, "y");
  expect_same_bits(grad_x, grad_x_expected, "gradient of x");
  expect_same_bits(grad_weight, grad_weight_expected, "gradient of the weight");
}

TEST(Headwise, HasTheBitsOfAProductPerGroup) {
  const simd::Isa before = simd::current_isa();
  for (const simd::Isa isa : simd::supported_isas()) {
    simd::set_isa(isa);
    for (const Sizes& s : {Sizes{3, 16, 4, 4},
                           {1, 5, 4, 4},
                           {70, 3, 2, 2},
                           {2, 9, 1, 1},
                           {600, 4, 4, 4},
                           {7, 3, 8, 8},
                           {7, 3, 3, 3},
                           {5, 2, 16, 16},
                           {4, 2, 17, 17},
                           {6, 3, 4, 5},
                           {0, 3, 4, 4},
                           {5, 0, 4, 4}}) {
      expect_equals_matmul<float>(s, std::string(simd::isa_name(isa)) + " float");
      expect_equals_matmul<double>(s, std::string(simd::isa_name(isa)) + " double");
    }
  }
  simd::set_isa(before);
}

}  // namespace
}  // namespace stepwell::ops
