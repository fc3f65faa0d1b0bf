// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/slstm.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/simd/isa.h"

#include "ops/slstm/reference.h"
#include "tests/ops/rows.h"

namespace stepwell::ops {
namespace {

using testing::expect_near;
using testing::expect_same_bits;
using testing::Rows;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct CellOptions {
  std::vector<std::int64_t> lengths{5};
  std::int64_t H = 2, D = 5;
  double gates = 1;
  bool state = true, bias = true;
  std::uint64_t seed = 1;

  std::string to_string() const {
    std::string text = "T";
    for (auto length : lengths) text += " " + std::to_string(length);
    return text + " H " + std::to_string(H) + " D " + std::to_string(D) + " gates " + std::to_string(gates);
  }
};

template <class T>
struct CellCase {
  CellOptions options;
  std::vector<std::int64_t> offsets{0};
  Rows<T> x, R, bias, grad_y, state, grad_last;

  explicit CellCase(const CellOptions& o) : options(o) {
    for (auto length : o.lengths) offsets.push_back(offsets.back() + length);
    std::mt19937_64 engine(o.seed);
    std::normal_distribution<double> normal;
    const auto rows = [&](std::int64_t I, std::int64_t J, std::int64_t K, double size, std::int64_t gap) {
      Rows<T> r(I, J, K, gap);
      r.fill([&](std::int64_t) { return static_cast<float>(size * normal(engine)); });
      return r;
    };
    const std::int64_t L = offsets.back(), S = sequences(), width = o.H * o.D;
    x = rows(L, 4 * width, 1, o.gates, 3);
    R = rows(o.H, 4 * o.D, o.D, 0.5, 0);
    bias = rows(1, 4 * width, 1, 1, 0);
    grad_y = rows(L, width, 1, 1, 3);
    state = rows(S, 4, width, o.state ? 1 : 0, 3);
    for (std::int64_t s = 0; s < S && o.state; ++s) {  // n is a sum of positive numbers
      for (std::int64_t j = 0; j < width; ++j)
        state[(4 * s + 2) * width + j] = T(0.5) + std::abs(state[(4 * s + 2) * width + j]);
    }
    grad_last = rows(S, 4, width, 1, 3);
  }
  template <class U>
  explicit CellCase(const CellCase<U>& c)
      : options(c.options),
        offsets(c.offsets),
        x(c.x.template as<T>()),
        R(c.R.template as<T>()),
        bias(c.bias.template as<T>()),
        grad_y(c.grad_y.template as<T>()),
        state(c.state.template as<T>()),
        grad_last(c.grad_last.template as<T>()) {}

  std::int64_t sequences() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::int64_t width() const { return options.H * options.D; }
  Segments segments() const { return Segments::from_offsets(offsets, offsets.back()); }
  // Tokens first … last−1 of the first sequence.
  CellCase part(std::int64_t first, std::int64_t last) const {
    CellCase c = *this;
    c.offsets = {0, last - first};
    c.x = x.rows(first, last);
    c.grad_y = grad_y.rows(first, last);
    return c;
  }
  SlstmInputs<T> inputs() { return {x.view2(), R.view3(), options.bias ? bias.data() : nullptr}; }
};

template <class T>
struct Outputs {
  Rows<T> y, last;
  std::vector<T> trace;
  View<T, 3> trace_view(const CellCase<T>& c) {
    return View<T, 3>::contiguous(trace.data(), {c.options.H, c.offsets.back(), kSlstmTrace * c.options.D});
  }
};
template <class T>
Outputs<T> run(CellCase<T>& c, Context& ctx) {
  Outputs<T> out{Rows<T>(c.offsets.back(), c.width()), c.state, {}};
  out.trace.assign(static_cast<std::size_t>(c.offsets.back() * kSlstmTrace * c.width() + 1),
                   std::numeric_limits<T>::quiet_NaN());
  slstm<T>(ctx, c.inputs(), c.segments(), out.last.view3(), out.y.view2(), out.trace_view(c));
  return out;
}
template <class T>
Outputs<T> run(CellCase<T>& c) {
  Context ctx = Context::serial();
  return run(c, ctx);
}

template <class T>
struct CellGradients {
  Rows<T> x, R, bias, state;
};
template <class T>
CellGradients<T> run_backward(CellCase<T>& c, Context& ctx, bool reference = false) {
  const CellOptions& o = c.options;
  CellGradients<T> g{Rows<T>(c.offsets.back(), 4 * c.width()), Rows<T>(o.H, 4 * o.D, o.D, 0),
                     Rows<T>(1, 4 * c.width(), 1, 0), Rows<T>(c.sequences(), 4, c.width())};
  const SlstmGradients<T> out{g.x.view2(), g.R.view3(), g.bias.data(), g.state.view3()};
  if (reference) {
    reference::slstm_backward<T>(c.inputs(), c.segments(), c.state.view3(), c.grad_y.view2(), c.grad_last.view3(), out);
  } else {
    Outputs<T> forward = run(c, ctx);
    slstm_backward<T>(ctx, c.inputs(), c.segments(), c.state.view3(), forward.y.view2(), forward.trace_view(c),
                      c.grad_y.view2(), c.grad_last.view3(), out);
  }
  return g;
}

template <class T>
void expect_near(const CellGradients<T>& actual, const CellGradients<double>& expected, double tolerance) {
  expect_near(actual.x, expected.x, tolerance, "gradient of x");
  expect_near(actual.R, expected.R, tolerance, "gradient of R");
  expect_near(actual.bias, expected.bias, tolerance, "gradient of bias");
  expect_near(actual.state, expected.state, tolerance, "gradient of the state");
}

// Forward and backward in both float types against the float64 reference.
void expect_reference(const CellOptions& options) {
  SCOPED_TRACE(options.to_string());
  CellCase<double> wide(options);
  CellCase<float> narrow(wide);
  Rows<double> y(wide.offsets.back(), wide.width()), last = wide.state;
  reference::slstm<double>(wide.inputs(), wide.segments(), last.view3(), y.view2());
  Context ctx = Context::serial();
  const auto gradients = run_backward(wide, ctx, true);
  const auto check = [&](auto& c, double tolerance, double gradient_tolerance) {
    const auto out = run(c);
    expect_near(out.y, y, tolerance, "y");
    expect_near(out.last, last, tolerance, "last state");
    expect_near(run_backward(c, ctx), gradients, gradient_tolerance);
  };
  check(wide, 1e-13, 1e-12);
  check(narrow, 1e-5, 1e-4);
}

TEST(Slstm, EqualsTheReferenceForAnyLength) {
  for (const std::int64_t T : {0, 1, 2, 3, 17, 64, 100}) expect_reference({.lengths = {T}});
}

TEST(Slstm, EqualsTheReferenceForAnyWidth) {
  for (const std::int64_t H : {1, 2, 3, 7}) {
    for (const std::int64_t D : {1, 3, 4, 16, 17, 40}) expect_reference({.lengths = {7, 0, 4}, .H = H, .D = D});
  }
}

TEST(Slstm, EqualsTheReferenceWithoutBiasOrState) {
  expect_reference({.lengths = {9, 5}, .bias = false});
  expect_reference({.lengths = {9, 5}, .state = false});
  for (const double gates : {15.0, 100.0})
    expect_reference({.lengths = {12, 1}, .D = 8, .gates = gates, .state = false});
}

TEST(Slstm, GradientsEqualFiniteDifferences) {
  CellCase<double> c({.lengths = {3, 1}, .D = 3});
  Context ctx = Context::serial();
  const auto g = run_backward(c, ctx);
  const auto loss = [&] {
    const auto out = run(c);
    double sum = 0;
    for (std::int64_t i = 0; i < out.y.size(); ++i) sum += out.y[i] * c.grad_y[i];
    for (std::int64_t i = 0; i < out.last.size(); ++i) sum += out.last[i] * c.grad_last[i];
    return sum;
  };
  testing::expect_finite_differences("x", c.x, g.x, loss);
  testing::expect_finite_differences("R", c.R, g.R, loss);
  testing::expect_finite_differences("bias", c.bias, g.bias, loss);
  testing::expect_finite_differences("state", c.state, g.state, loss);
}

// The rule for n = 0 goes by unit: a fresh sequence beside a used one gives what it gives alone, for any input gate.
TEST(Slstm, AFreshSequenceBesideAUsedOne) {
  CellCase<float> c({.lengths = {4, 4}});
  const std::int64_t width = c.width();
  for (std::int64_t j = 0; j < 4 * width; ++j) c.state[4 * width + j] = 0;
  for (std::int64_t t = 4; t < 8; ++t) {
    for (std::int64_t j = 0; j < width; ++j) c.x[t * 4 * width + j] = -200;
  }
  const auto both = run(c);
  CellCase<float> alone = c.part(4, 8);
  alone.state = c.state.rows(1, 2);
  const auto one = run(alone);
  expect_same_bits(both.y.rows(4, 8), one.y, "y");
  expect_same_bits(both.last.rows(1, 2), one.last, "state");
  for (std::int64_t i = 0; i < one.y.size(); ++i) EXPECT_TRUE(std::isfinite(one.y[i]));
}

TEST(Slstm, InfiniteGates) {
  CellCase<float> c({.lengths = {4}, .state = false, .bias = false});
  const std::int64_t width = c.width();
  const auto gate = [&](std::int64_t t, std::int64_t g, double value) {
    for (std::int64_t j = 0; j < width; ++j) c.x[t * 4 * width + g * width + j] = static_cast<float>(value);
  };
  gate(0, 0, -kInfinity);  // nothing written: y is 0
  gate(2, 1, -kInfinity);  // everything forgotten
  gate(3, 0, -kInfinity);
  gate(3, 1, 50);  // everything kept
  const auto out = run(c);
  for (std::int64_t i = 0; i < out.y.size(); ++i) ASSERT_TRUE(std::isfinite(out.y[i])) << i;
  for (std::int64_t i = 0; i < width; ++i) {
    EXPECT_EQ(out.y[i], 0);
    EXPECT_EQ(out.last[2 * width + i], 1) << "n holds the one token alone";
  }
  Context ctx = Context::serial();
  const auto g = run_backward(c, ctx);
  for (const Rows<float>* rows : {&g.x, &g.R, &g.state}) {
    for (std::int64_t i = 0; i < rows->size(); ++i) ASSERT_TRUE(std::isfinite((*rows)[i])) << i;
  }
}

TEST(Slstm, StaysFiniteForGatesOfHundreds) {
  CellCase<float> c({.lengths = {40}, .gates = 300, .state = false});
  Context ctx = Context::serial();
  const auto out = run(c);
  const auto g = run_backward(c, ctx);
  for (const Rows<float>* rows : {&out.y, &out.last, &g.x, &g.R, &g.bias, &g.state}) {
    for (std::int64_t i = 0; i < rows->size(); ++i) ASSERT_TRUE(std::isfinite((*rows)[i])) << i;
  }
}

TEST(Slstm, SplitsHaveTheSameBits) {
  constexpr std::int64_t kTokens = 50;
  CellCase<float> whole({.lengths = {kTokens}, .D = 21, .gates = 3});
  const auto expected = run(whole);
  for (const std::int64_t step : {1, 7, 32}) {
    Rows<float> state = whole.state;
    for (std::int64_t first = 0; first < kTokens; first += step) {
      const std::int64_t last = std::min(first + step, kTokens);
      CellCase<float> part = whole.part(first, last);
      part.state = state;
      const auto out = run(part);
      expect_same_bits(out.y, expected.y.rows(first, last), "y before token " + std::to_string(last));
      state = out.last;
    }
    expect_same_bits(state, expected.last, "state");
  }
}

TEST(Slstm, ThreadsAndInstructionSetsHaveTheSameBits) {
  const simd::Isa before = simd::current_isa();
  CellCase<float> c({.lengths = {20, 13, 0}, .H = 3, .D = 37, .gates = 3});
  Context serial = Context::serial();
  const auto expected = run(c);
  const auto gradients = run_backward(c, serial);
  const auto check = [&](Context& ctx, const std::string& what) {
    const auto out = run(c, ctx);
    expect_same_bits(out.y, expected.y, what + ", y");
    expect_same_bits(out.last, expected.last, what + ", state");
    const auto g = run_backward(c, ctx);
    expect_same_bits(g.x, gradients.x, what + ", gradient of x");
    expect_same_bits(g.R, gradients.R, what + ", gradient of R");
    expect_same_bits(g.bias, gradients.bias, what + ", gradient of bias");
    expect_same_bits(g.state, gradients.state, what + ", gradient of the state");
  };
  for (const int threads : {2, 3}) {
    Context ctx = Context::parallel(threads);
    check(ctx, std::to_string(threads) + " threads");
  }
  for (const simd::Isa isa : simd::supported_isas()) {
    if (!simd::has_fma(isa) && isa != simd::Isa::Scalar) continue;
    simd::set_isa(isa);
    check(serial, std::string(simd::isa_name(isa)));
  }
  simd::set_isa(before);
}

// The gradient of two segments with the state handed over is that of one run.
TEST(Slstm, GradientsOfTwoSegmentsEqualThoseOfOne) {
  constexpr std::int64_t kTokens = 30, kCut = 13;
  CellCase<double> whole({.lengths = {kTokens}});
  Context ctx = Context::serial();
  const auto expected = run_backward(whole, ctx);
  CellCase<double> first = whole.part(0, kCut), second = whole.part(kCut, kTokens);
  second.state = run(first).last;
  const auto late = run_backward(second, ctx);
  first.grad_last = late.state;
  const auto early = run_backward(first, ctx);
  expect_near(early.x, expected.x.rows(0, kCut), 1e-13, "x before the cut");
  expect_near(late.x, expected.x.rows(kCut, kTokens), 1e-13, "x after the cut");
  expect_near(early.state, expected.state, 1e-13, "state");
}

}  // namespace
}  // namespace stepwell::ops
