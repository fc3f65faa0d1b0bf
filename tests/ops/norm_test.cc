// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/norm.h"

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/tensor.h"

namespace stepwell {
namespace {

using ops::GateActivation;
using ops::GateOrder;
using Index = std::int64_t;

Tensor uniform(const Shape& shape, double low, double high, unsigned number, DType dtype = DType::F64) {
  std::mt19937_64 generator(number);
  Tensor t = Tensor::empty(shape, DType::F64);
  for (double& v : t.span<double>()) v = low + (high - low) * static_cast<double>(generator() >> 11) * 0x1p-53;
  return t.to(dtype);
}
Tensor poisoned(const Shape& shape, DType dtype = DType::F64) {
  return Tensor::full(shape, std::numeric_limits<double>::quiet_NaN(), dtype);
}
double activated(GateActivation activation, double x) {
  return (activation == GateActivation::Silu ? x : 1) / (1 + std::exp(-x));
}

// The definition, in double.
Tensor rms_norm_reference(const ops::RmsNormInputs& in) {
  const Index width = in.x.size(-1), rows = in.x.shape().rows(), group = in.group == 0 ? width : in.group;
  const Tensor y = Tensor::empty(in.x.shape(), DType::F64);
  auto input = [&](Index i) {
    return in.x.at(i) * (in.z && in.gate == GateOrder::Before ? activated(in.activation, in.z.at(i)) : 1);
  };
  for (Index at = 0; at < rows * width; at += group) {
    double square = 0;
    for (Index i = at; i < at + group; ++i) square += input(i) * input(i);
    const double root = std::sqrt(square / static_cast<double>(group) + in.eps);
    for (Index i = at; i < at + group; ++i) {
      double v = root == 0 ? 0 : input(i) / root;
      if (in.weight) v *= in.weight.at(i % width);
      if (in.z && in.gate == GateOrder::After) v *= activated(in.activation, in.z.at(i));
      y.data<double>()[i] = v;
    }
  }
  return y;
}

Tensor layer_norm_reference(const ops::LayerNormInputs& in) {
  const Index width = in.x.size(-1), rows = in.x.shape().rows(), group = in.group == 0 ? width : in.group;
  const Tensor y = Tensor::empty(in.x.shape(), DType::F64);
  for (Index at = 0; at < rows * width; at += group) {
    double mean = 0, square = 0;
    for (Index i = at; i < at + group; ++i) mean += in.x.at(i) / static_cast<double>(group);
    for (Index i = at; i < at + group; ++i) square += std::pow(in.x.at(i) - mean, 2) / static_cast<double>(group);
    for (Index i = at; i < at + group; ++i) {
      double v = (in.x.at(i) - mean) / std::sqrt(square + in.eps);
      if (in.weight) v *= in.weight.at(i % width) + (in.one_plus_weight ? 1 : 0);
      if (in.bias) v += in.bias.at(i % width);
      y.data<double>()[i] = v;
    }
  }
  return y;
}

void expect_near(const Tensor& got, const Tensor& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.shape(), want.shape());
  double worst = 0, size = 1;
  Index where = 0;
  for (Index i = 0; i < want.numel(); ++i) size = std::max(size, std::fabs(want.at(i)));
  for (Index i = 0; i < want.numel(); ++i) {
    const double error = std::fabs(got.at(i) - want.at(i));
    if (!(error <= worst)) {
      worst = error;
      where = i;
    }
  }
  EXPECT_LE(worst, tolerance * size) << what << ", element " << where << ": " << (want.numel() ? got.at(where) : 0)
                                     << ", expected " << (want.numel() ? want.at(where) : 0);
}

// d/dx of Σ cotangent·f by central differences; x is changed in place and put back.
Tensor numeric_gradient(const Tensor& x, const Tensor& cotangent, const std::function<Tensor()>& f) {
  const Tensor g = Tensor::empty(x.shape(), DType::F64);
  auto loss = [&] {
    const Tensor y = f();
    double total = 0;
    for (Index i = 0; i < y.numel(); ++i) total += y.at(i) * cotangent.at(i);
    return total;
  };
  for (Index i = 0; i < x.numel(); ++i) {
    double& v = x.data<double>()[i];
    const double old = v, step = 1e-6 * std::max(1.0, std::fabs(old));
    v = old + step;
    const double above = loss();
    v = old - step;
    const double below = loss();
    v = old;
    g.data<double>()[i] = (above - below) / (2 * step);
  }
  return g;
}

struct Case {
  Shape shape;
  Index group;
  int gate;  // 0: none, 1: before, 2: after
  bool weight;
  GateActivation activation = GateActivation::Silu;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int gate : {0, 1, 2}) {
    for (const bool weight : {false, true}) {
      for (const Index width : {1, 2, 7, 16, 33, 67}) all.push_back({{3, width}, 0, gate, weight});
      all.push_back({{2, 3, 24}, 8, gate, weight});
      all.push_back({{5, 34}, 17, gate, weight});
      all.push_back({{300, 3}, 1, gate, weight});
      all.push_back({{0, 5}, 0, gate, weight});
      all.push_back({{4, 0}, 0, gate, weight});
      all.push_back({{9}, 3, gate, weight});
      if (gate) all.push_back({{3, 4, 19}, 0, gate, weight, GateActivation::Sigmoid});
      if (gate) all.push_back({{2, 34}, 17, gate, weight, GateActivation::Sigmoid});
    }
  }
  return all;
}
ops::RmsNormInputs inputs_of(const Case& c, DType dtype) {
  return {.x = uniform(c.shape, -2, 2, 1, dtype),
          .z = c.gate ? uniform(c.shape, -3, 3, 2, dtype) : Tensor(),
          .weight = c.weight ? uniform({c.shape[-1]}, 0.5, 1.5, 3, dtype) : Tensor(),
          .eps = 1e-5,
          .group = c.group,
          .gate = c.gate == 2 ? GateOrder::After : GateOrder::Before,
          .activation = c.activation};
}
std::string name_of(const Case& c) {
  return c.shape.to_string() + " group " + std::to_string(c.group) + " gate " + std::to_string(c.gate) +
         (c.weight ? " weight" : "") + (c.activation == GateActivation::Sigmoid ? " sigmoid" : "");
}

TEST(RmsNorm, EqualsItsDefinition) {
  Context ctx = Context::serial();
  for (const Case& c : cases()) {
    for (const DType dtype : {DType::F32, DType::F64}) {
      const auto in = inputs_of(c, dtype);
      const Tensor y = poisoned(c.shape, dtype);
      ops::rms_norm(ctx, in, y);
      expect_near(y, rms_norm_reference(in), dtype == DType::F32 ? 1e-6 : 4e-15, name_of(c));
    }
  }
}

TEST(RmsNorm, GradientsEqualFiniteDifferences) {
  Context ctx = Context::serial();
  for (const Case& c : cases()) {
    auto in = inputs_of(c, DType::F64);
    const Tensor cotangent = uniform(c.shape, -1, 1, 4);
    const ops::RmsNormGradients out{.x = poisoned(c.shape),
                                    .z = c.gate ? poisoned(c.shape) : Tensor(),
                                    .weight = c.weight ? poisoned({c.shape[-1]}) : Tensor()};
    ops::rms_norm_backward(ctx, in, cotangent, out);
    auto forward = [&] { return rms_norm_reference(in); };
    if (c.shape.size() > 500) continue;
    expect_near(out.x, numeric_gradient(in.x, cotangent, forward), 1e-7, name_of(c) + " x");
    if (in.z) expect_near(out.z, numeric_gradient(in.z, cotangent, forward), 1e-7, name_of(c) + " z");
    if (in.weight)
      expect_near(out.weight, numeric_gradient(in.weight, cotangent, forward), 1e-7, name_of(c) + " weight");

    // In float, and each gradient alone: the same as all together.
    const auto narrow = inputs_of(c, DType::F32);
    const ops::RmsNormGradients small{.x = poisoned(c.shape, DType::F32),
                                      .z = c.gate ? poisoned(c.shape, DType::F32) : Tensor(),
                                      .weight = c.weight ? poisoned({c.shape[-1]}, DType::F32) : Tensor()};
    const Tensor grad = cotangent.to(DType::F32);
    ops::rms_norm_backward(ctx, narrow, grad, small);
    // A width of 1 leaves nothing of the gradient but rounding, magnified by 1/rms.
    expect_near(small.x, out.x.to(DType::F32), 1e-5, name_of(c) + " x in float");
    if (in.z) expect_near(small.z, out.z.to(DType::F32), 1e-5, name_of(c) + " z in float");
    if (in.weight) {
      expect_near(small.weight, out.weight.to(DType::F32), 1e-5, name_of(c) + " weight in float");
      const Tensor alone = poisoned({c.shape[-1]}, DType::F32);
      ops::rms_norm_backward(ctx, narrow, grad, {.x = {}, .z = {}, .weight = alone});
      EXPECT_TRUE(alone.same_bits(small.weight));
    }
    if (in.z) {
      const Tensor alone = poisoned(c.shape, DType::F32);
      ops::rms_norm_backward(ctx, narrow, grad, {.x = {}, .z = alone, .weight = {}});
      EXPECT_TRUE(alone.same_bits(small.z));
    }
  }
}

TEST(RmsNorm, BitsDependNeitherOnOtherRowsNorOnThreads) {
  const Index rows = 700, width = 131;
  auto in = inputs_of({{rows, width}, 0, 2, true}, DType::F32);
  in.x.slice(0, 3, 1).fill(std::numeric_limits<double>::quiet_NaN());
  const Tensor grad = uniform({rows, width}, -1, 1, 5, DType::F32);
  grad.slice(0, 3, 1).fill(0);
  std::vector<Tensor> first;
  for (const int threads : {1, 2, 3}) {
    Context ctx = Context::parallel(threads);
    const Tensor y = poisoned({rows, width}, DType::F32);
    const ops::RmsNormGradients out{.x = poisoned({rows, width}, DType::F32),
                                    .z = poisoned({rows, width}, DType::F32),
                                    .weight = poisoned({width}, DType::F32)};
    ops::rms_norm(ctx, in, y);
    ops::rms_norm_backward(ctx, in, grad, out);
    const std::vector<Tensor> results = {y, out.x, out.z, out.weight};
    if (first.empty()) first = results;
    for (std::size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(results[i].same_bits(first[i])) << i;
  }
  Context ctx = Context::serial();
  for (const Index r : {0, 2, 4, 699}) {
    auto one = in;
    one.x = in.x.slice(0, r, 1);
    one.z = in.z.slice(0, r, 1);
    const Tensor y = poisoned({1, width}, DType::F32);
    ops::rms_norm(ctx, one, y);
    EXPECT_TRUE(y.same_bits(first[0].slice(0, r, 1))) << "a NaN in row 3 must stay there; row " << r;
  }
}

TEST(RmsNorm, WorksInPlace) {
  Context ctx = Context::serial();
  for (const int gate : {0, 1, 2}) {
    const auto in = inputs_of({{5, 19}, 0, gate, true}, DType::F32);
    const Tensor y = poisoned({5, 19}, DType::F32), grad = uniform({5, 19}, -1, 1, 6, DType::F32);
    ops::rms_norm(ctx, in, y);
    auto inplace = in;
    inplace.x = in.x.clone();
    ops::rms_norm(ctx, inplace, inplace.x);
    EXPECT_TRUE(inplace.x.same_bits(y));

    const Tensor grad_x = poisoned({5, 19}, DType::F32), shared = grad.clone();
    ops::rms_norm_backward(ctx, in, grad, {.x = grad_x, .z = {}, .weight = {}});
    ops::rms_norm_backward(ctx, in, shared, {.x = shared, .z = {}, .weight = {}});
    EXPECT_TRUE(shared.same_bits(grad_x));
  }
}

TEST(RmsNorm, ZerosStayZeroWithoutEps) {
  Context ctx = Context::serial();
  const Tensor x = Tensor::zeros({2, 5}), y = poisoned({2, 5}, DType::F32), grad = Tensor::full({2, 5}, 1);
  const Tensor grad_x = poisoned({2, 5}, DType::F32);
  ops::RmsNormInputs in;
  in.x = x;
  in.eps = 0;
  ops::rms_norm(ctx, in, y);
  ops::rms_norm_backward(ctx, in, grad, {.x = grad_x, .z = {}, .weight = {}});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(y.at(i), 0);
    EXPECT_EQ(grad_x.at(i), 0);
  }
}

TEST(SumNorm, EqualsItsDefinitionAndFiniteDifferences) {
  Context ctx = Context::serial();
  for (const Shape& shape : {Shape{3, 2}, {3, 7}, {2, 2, 16}, {5, 33}, {1, 1}, {0, 3}, {4, 0}, {9}}) {
    const Tensor x = uniform(shape, 0.5, 2, 1), y = poisoned(shape), cotangent = uniform(shape, -1, 1, 2);
    const Tensor y32 = poisoned(shape, DType::F32), grad = poisoned(shape),
                 width_sum = Tensor::zeros(shape, DType::F64);
    const auto definition = [&] {
      for (Index i = 0, n = shape[-1]; i < x.numel(); ++i) {
        double sum = 0;
        for (Index j = 0; j < n; ++j) sum += x.at(i / n * n + j);
        width_sum.data<double>()[i] = x.at(i) / sum;
      }
      return width_sum;
    };
    ops::sum_norm(ctx, x, y);
    ops::sum_norm(ctx, x.to(DType::F32), y32);
    expect_near(y, definition(), 1e-15, shape.to_string());
    expect_near(y32, definition(), 1e-6, shape.to_string());
    ops::sum_norm_backward(ctx, x, cotangent, grad);
    expect_near(grad, numeric_gradient(x, cotangent, definition), 1e-7, shape.to_string());
  }
  const Tensor zeros = Tensor::zeros({2, 3}), y = poisoned({2, 3}, DType::F32), ones = Tensor::full({2, 3}, 1);
  ops::sum_norm(ctx, zeros, y);
  EXPECT_TRUE(y.same_bits(zeros)) << "a sum of 0";
  ops::sum_norm_backward(ctx, zeros, ones, y);
  EXPECT_TRUE(y.same_bits(zeros));
  EXPECT_THROW(ops::sum_norm(ctx, zeros, Tensor::zeros({3, 2})), Error);
  EXPECT_THROW(ops::sum_norm_backward(ctx, zeros, zeros, Tensor::zeros({3, 2})), Error);
}

TEST(LayerNorm, EqualsItsDefinitionAndFiniteDifferences) {
  Context ctx = Context::serial();
  for (const Shape& shape : {Shape{3, 2}, {3, 7}, {2, 2, 16}, {5, 33}, {1, 67}, {0, 3}, {4, 0}, {9}}) {
    for (const int parameters : {0, 1, 2, 3}) {
      const std::string name = shape.to_string() + " parameters " + std::to_string(parameters);
      const ops::LayerNormInputs in{.x = uniform(shape, -2, 2, 1),
                                    .weight = parameters & 1 ? uniform({shape[-1]}, 0.5, 1.5, 2) : Tensor(),
                                    .bias = parameters & 2 ? uniform({shape[-1]}, -1, 1, 3) : Tensor(),
                                    .eps = 1e-5};
      const ops::LayerNormInputs narrow{.x = in.x.to(DType::F32),
                                        .weight = in.weight ? in.weight.to(DType::F32) : Tensor(),
                                        .bias = in.bias ? in.bias.to(DType::F32) : Tensor(),
                                        .eps = 1e-5};
      const Tensor y = poisoned(shape), y32 = poisoned(shape, DType::F32), cotangent = uniform(shape, -1, 1, 4);
      ops::layer_norm(ctx, in, y);
      ops::layer_norm(ctx, narrow, y32);
      expect_near(y, layer_norm_reference(in), 1e-14, name);
      expect_near(y32, layer_norm_reference(narrow), 2e-6, name);

      const ops::LayerNormGradients out{.x = poisoned(shape),
                                        .weight = in.weight ? poisoned({shape[-1]}) : Tensor(),
                                        .bias = in.bias ? poisoned({shape[-1]}) : Tensor()};
      ops::layer_norm_backward(ctx, in, cotangent, out);
      auto forward = [&] { return layer_norm_reference(in); };
      expect_near(out.x, numeric_gradient(in.x, cotangent, forward), 1e-7, name + " x");
      if (in.weight) expect_near(out.weight, numeric_gradient(in.weight, cotangent, forward), 1e-7, name + " weight");
      if (in.bias) expect_near(out.bias, numeric_gradient(in.bias, cotangent, forward), 1e-7, name + " bias");
    }
  }
}

TEST(LayerNorm, GroupsAndOnePlusWeight) {
  Context ctx = Context::serial();
  for (const Index group : {1, 5, 15, 30}) {
    for (const bool one_plus : {false, true}) {
      const std::string name = "group " + std::to_string(group) + (one_plus ? ", 1 + weight" : "");
      const Shape shape{7, 30};
      const ops::LayerNormInputs in{.x = uniform(shape, -2, 2, 1),
                                    .weight = uniform({30}, 0.5, 1.5, 2),
                                    .bias = uniform({30}, -1, 1, 3),
                                    .eps = 1e-3,
                                    .group = group,
                                    .one_plus_weight = one_plus};
      const Tensor y = poisoned(shape), cotangent = uniform(shape, -1, 1, 4);
      ops::layer_norm(ctx, in, y);
      expect_near(y, layer_norm_reference(in), 1e-14, name);
      const ops::LayerNormGradients out{.x = poisoned(shape), .weight = poisoned({30}), .bias = poisoned({30})};
      ops::layer_norm_backward(ctx, in, cotangent, out);
      auto forward = [&] { return layer_norm_reference(in); };
      expect_near(out.x, numeric_gradient(in.x, cotangent, forward), 1e-7, name + " x");
      expect_near(out.weight, numeric_gradient(in.weight, cotangent, forward), 1e-7, name + " weight");
      expect_near(out.bias, numeric_gradient(in.bias, cotangent, forward), 1e-7, name + " bias");
    }
  }
}

TEST(LayerNorm, BitsDependNeitherOnOtherRowsNorOnThreads) {
  const Index rows = 600, width = 67;
  const ops::LayerNormInputs in{.x = uniform({rows, width}, -2, 2, 1, DType::F32),
                                .weight = uniform({width}, 0.5, 1.5, 2, DType::F32),
                                .bias = uniform({width}, -1, 1, 3, DType::F32),
                                .eps = 1e-5};
  const Tensor grad = uniform({rows, width}, -1, 1, 4, DType::F32);
  std::vector<Tensor> first;
  for (const int threads : {1, 2, 3}) {
    Context ctx = Context::parallel(threads);
    const Tensor y = poisoned({rows, width}, DType::F32);
    const ops::LayerNormGradients out{.x = poisoned({rows, width}, DType::F32),
                                      .weight = poisoned({width}, DType::F32),
                                      .bias = poisoned({width}, DType::F32)};
    ops::layer_norm(ctx, in, y);
    ops::layer_norm_backward(ctx, in, grad, out);
    const std::vector<Tensor> results = {y, out.x, out.weight, out.bias};
    if (first.empty()) first = results;
    for (std::size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(results[i].same_bits(first[i])) << i;
  }
  Context ctx = Context::serial();
  auto one = in;
  one.x = in.x.slice(0, 599, 1);
  const Tensor y = poisoned({1, width}, DType::F32);
  ops::layer_norm(ctx, one, y);
  EXPECT_TRUE(y.same_bits(first[0].slice(0, 599, 1)));
}

TEST(Norm, WrongArgumentsAreErrors) {
  Context ctx = Context::serial();
  const Tensor x = Tensor::zeros({2, 6}), y = Tensor::zeros({2, 6});
  ops::RmsNormInputs in;
  EXPECT_THROW(ops::rms_norm(ctx, in, y), Error);
  in.x = x;
  EXPECT_NO_THROW(ops::rms_norm(ctx, in, y));
  EXPECT_THROW(ops::rms_norm(ctx, in, Tensor::zeros({2, 5})), Error);
  EXPECT_THROW(ops::rms_norm(ctx, in, Tensor::zeros({2, 6}, DType::F64)), Error);
  in.group = 4;
  EXPECT_THROW(ops::rms_norm(ctx, in, y), Error);
  in.group = -1;
  EXPECT_THROW(ops::rms_norm(ctx, in, y), Error);
  in.group = 0;
  in.eps = -1;
  EXPECT_THROW(ops::rms_norm(ctx, in, y), Error);
  in.eps = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(ops::rms_norm(ctx, in, y), Error);
  in.eps = 1e-5;
  in.weight = Tensor::zeros({5});
  EXPECT_THROW(ops::rms_norm(ctx, in, y), Error);
  in.weight = Tensor();
  in.z = Tensor::zeros({6});
  EXPECT_THROW(ops::rms_norm(ctx, in, y), Error);
  in.z = Tensor();
  EXPECT_THROW(ops::rms_norm_backward(ctx, in, y, {.x = {}, .z = y, .weight = {}}), Error);
  ops::LayerNormInputs layer;
  layer.x = Tensor::zeros({});
  EXPECT_THROW(ops::layer_norm(ctx, layer, layer.x), Error);
}

}  // namespace
}  // namespace stepwell
