// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/ops/selective_scan.h"
#include "stepwell/simd/isa.h"

#include "ops/selective_scan/reference.h"
#include "tests/ops/scan_case.h"

namespace stepwell::ops {
namespace {

using testing::expect_finite_differences;
using testing::expect_near;
using testing::expect_same_bits;
using testing::Rows;
using testing::run_backward;
using testing::run_scan;
using testing::ScanCase;
using testing::ScanGradients;
using testing::ScanOptions;

// Σ y·grad_y + Σ h·grad_h
double loss(ScanCase<double>& c) {
  Context ctx = Context::serial();
  auto out = run_scan(c, [&](const auto&... a) { selective_scan<double>(ctx, a...); });
  double sum = 0;
  for (std::int64_t i = 0; i < out.y.size(); ++i) sum += out.y[i] * c.grad_y[i];
  for (std::int64_t i = 0; i < out.h.size(); ++i) sum += out.h[i] * c.grad_h[i];
  return sum;
}

void expect_finite_differences(const ScanOptions& options) {
  ScanCase<double> c(options);
  Context ctx = Context::serial();
  auto g = run_backward(c, [&](const auto&... a) { selective_scan_backward<double>(ctx, a...); });
  SCOPED_TRACE(options.to_string());
  const auto check = [&](const char* name, Rows<double>& input, const Rows<double>& gradient) {
    expect_finite_differences(name, input, gradient, [&] { return loss(c); });
  };
  check("u", c.u, g.u);
  check("dt", c.dt, g.dt);
  check("A", c.A, g.A);
  check("B", c.B, g.B);
  check("C", c.C, g.C);
  check("z", c.z, g.z);
  check("D", c.skip, g.D);
  check("dt_bias", c.bias, g.dt_bias);
  check("h", c.h0, g.h);
}

TEST(SelectiveScanBackward, AgreesWithFiniteDifferencesForEveryInput) {
  expect_finite_differences({.lengths = {5, 0, 3}, .D = 3, .N = 4});
  expect_finite_differences({.lengths = {7}, .D = 1, .N = 1, .z = false});
  expect_finite_differences({.lengths = {4}, .D = 6, .N = 3, .G = 3, .skip = false});
  expect_finite_differences({.lengths = {4}, .D = 5, .N = 2, .bias = false, .softplus = false});
  expect_finite_differences({.lengths = {4, 2}, .D = 5, .N = 2, .constant_bc = true});
  expect_finite_differences({.lengths = {6}, .D = 3, .N = 4, .discretisation = Discretisation::ZeroOrder});
  expect_finite_differences(
      {.lengths = {6}, .D = 3, .N = 4, .constant_bc = true, .discretisation = Discretisation::ZeroOrder, .step = -8});
}

template <class T>
ScanGradients<T> run(ScanCase<T>& c, Context& ctx) {
  return run_backward(c, [&](const auto&... a) { selective_scan_backward<T>(ctx, a...); });
}
template <class T>
ScanGradients<T> run(ScanCase<T>& c) {
  Context ctx = Context::serial();
  return run(c, ctx);
}

template <class T>
void expect_same_bits(const ScanGradients<T>& actual, const ScanGradients<T>& expected, const std::string& what) {
  const auto a = actual.all(), e = expected.all();
  for (std::size_t i = 0; i < a.size(); ++i) expect_same_bits(*a[i].second, *e[i].second, a[i].first + ", " + what);
}

// Both float types against the float64 reference adjoint.
void expect_reference(const ScanOptions& options) {
  SCOPED_TRACE(options.to_string());
  ScanCase<double> wide(options);
  ScanCase<float> narrow(wide);
  const auto expected = run_backward(wide, [](const auto&... a) { reference::selective_scan_backward<double>(a...); });
  const auto check = [&](const auto& g, double tolerance) {
    const auto actual = g.all();
    for (std::size_t i = 0; i < actual.size(); ++i) {
      expect_near(*actual[i].second, *expected.all()[i].second, tolerance, actual[i].first);
    }
  };
  check(run(wide), 1e-12);
  check(run(narrow), 2e-5);
}

TEST(SelectiveScanBackward, EqualsTheReferenceForAnyLength) {
  for (const std::int64_t T : {0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 129, 255, 257, 300, 1000}) {
    expect_reference({.lengths = {T}, .D = 5, .N = 7});
  }
}

TEST(SelectiveScanBackward, EqualsTheReferenceForAnyWidth) {
  for (const std::int64_t D : {0, 1, 2, 3, 5, 8, 17, 31, 33, 64, 65, 100, 300}) {
    expect_reference({.lengths = {70}, .D = D, .N = 5});
  }
  for (const std::int64_t N : {0, 1, 5, 7, 16, 64}) expect_reference({.lengths = {66}, .D = 19, .N = N});
}

TEST(SelectiveScanBackward, EqualsTheReferenceForEveryOption) {
  for (int bits = 0; bits < 64; ++bits) {
    ScanOptions options{.lengths = {70, 0, 7}, .D = 35, .N = 4};
    options.z = bits & 1;
    options.skip = bits & 2;
    options.bias = bits & 4;
    options.softplus = bits & 8;
    options.constant_bc = bits & 16;
    if (bits & 32) options.discretisation = Discretisation::ZeroOrder;
    expect_reference(options);
  }
}

TEST(SelectiveScanBackward, SumsOverTheChannelsOfEachGroup) {
  for (const std::int64_t G : {1, 2, 3, 6, 18}) expect_reference({.lengths = {33}, .D = 18, .N = 5, .G = G});
  expect_reference({.lengths = {65}, .D = 600, .N = 5, .G = 2});  // several chunks in each
}

TEST(SelectiveScanBackward, EqualsTheReferenceForManySequences) {
  ScanOptions options{.lengths = {}, .D = 40, .N = 3};
  for (std::int64_t s = 0; s < 70; ++s) options.lengths.push_back(s * 37 % 90);
  expect_reference(options);
  options.constant_bc = true;
  expect_reference(options);
  expect_reference({.lengths = {}, .D = 3, .N = 2});
}

TEST(SelectiveScanBackward, EqualsTheReferenceForStepsOfAnySize) {
  for (const double step : {-40.0, -12.0, -5.0, 0.0, 5.0, 19.0, 40.0, 200.0}) {
    expect_reference({.lengths = {70}, .D = 40, .N = 16, .step = step});
  }
}

TEST(SelectiveScanBackward, SkipsGradientsThatNobodyWants) {
  ScanCase<float> c({.lengths = {70}, .D = 35, .N = 4});
  const auto all = run(c);
  const auto some =
      run_backward(c, [](const auto& in, const auto& segments, auto h0, auto grad_y, auto grad_h, auto out) {
        Context ctx = Context::serial();
        SelectiveScanGradients<float> wanted;
        wanted.dt = out.dt;
        wanted.C = out.C;
        selective_scan_backward<float>(ctx, in, segments, h0, grad_y, grad_h, wanted);
      });
  expect_same_bits(some.dt, all.dt, "dt");
  expect_same_bits(some.C, all.C, "C");
}

// A state that is not there counts as zero, and so does its gradient.
TEST(SelectiveScanBackward, OfKeptCheckpointsGivesTheSameBits) {
  for (const bool constant_bc : {false, true}) {
    ScanCase<float> c(
        {.lengths = {130, 0, 64, 1}, .D = 70, .N = 3, .G = constant_bc ? 1 : 2, .constant_bc = constant_bc});
    const auto expected = run(c);
    Context ctx = Context::serial();
    std::vector<float> kept(static_cast<std::size_t>(selective_scan_checkpoints(c.inputs(), c.segments())), NAN);
    run_scan(c, [&](const auto& in, const auto& segments, auto h, auto y, auto) {
      selective_scan<float>(ctx, in, segments, h, y, {}, kept.data());
    });
    const auto g = run_backward(c, [&](const auto& in, const auto& segments, auto, auto grad_y, auto grad_h, auto out) {
      selective_scan_backward<float>(ctx, in, segments, {}, grad_y, grad_h, out, kept.data());
    });
    expect_same_bits(g, expected, "with checkpoints");
  }
}

TEST(SelectiveScanBackward, TakesAbsentStatesForZero) {
  ScanCase<float> c({.lengths = {70, 5}, .D = 35, .N = 4});
  c.h0.fill([](std::int64_t) { return 0; });
  c.grad_h.fill([](std::int64_t) { return 0; });
  const auto expected = run(c);
  const auto absent = run_backward(c, [](const auto& in, const auto& segments, auto, auto grad_y, auto, auto out) {
    Context ctx = Context::serial();
    selective_scan_backward<float>(ctx, in, segments, {}, grad_y, {}, out);
  });
  expect_same_bits(absent, expected, "absent");
}

// X3.
template <class T>
void expect_same_bits_for_any_number_of_threads(const ScanOptions& options) {
  ScanCase<T> c(options);
  const auto expected = run(c);
  for (const int threads : {2, 3, 4}) {
    Context ctx = Context::parallel(threads);
    expect_same_bits(run(c, ctx), expected, std::to_string(threads) + " threads " + options.to_string());
  }
}
TEST(SelectiveScanBackward, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const bool constant : {false, true}) {
    const ScanOptions options{.lengths = {130, 3, 0, 65}, .D = 300, .N = 5, .constant_bc = constant};
    expect_same_bits_for_any_number_of_threads<float>(options);
    expect_same_bits_for_any_number_of_threads<double>(options);
  }
}

// X7.
template <class T>
void expect_same_bits_on_every_instruction_set(const ScanOptions& options) {
  ScanCase<T> c(options);
  const simd::Isa best = simd::current_isa();
  const auto expected = run(c);
  for (const simd::Isa isa : simd::supported_isas()) {
    if (!simd::has_fma(isa)) continue;
    simd::set_isa(isa);
    expect_same_bits(run(c), expected, std::string(simd::isa_name(isa)) + " " + options.to_string());
  }
  simd::set_isa(best);
}
TEST(SelectiveScanBackward, GivesTheSameBitsOnEveryInstructionSet) {
  for (const double step : {-1.0, 6.0}) {
    for (const bool constant : {false, true}) {
      for (const auto form : {Discretisation::Euler, Discretisation::ZeroOrder}) {
        const ScanOptions options{
            .lengths = {67}, .D = 37, .N = 7, .constant_bc = constant, .discretisation = form, .step = step};
        expect_same_bits_on_every_instruction_set<float>(options);
        expect_same_bits_on_every_instruction_set<double>(options);
      }
    }
  }
}

// The gradient through two halves of a sequence, the state handed over and its gradient handed back, is that of the
// whole.
TEST(SelectiveScanBackward, OfTwoPartsIsThatOfTheWhole) {
  for (const std::int64_t cut : {1, 50, 64, 99, 100}) {
    ScanCase<double> whole({.lengths = {100}, .D = 35, .N = 5});
    const auto expected = run(whole);
    ScanCase<double> first = whole.rows(0, cut), second = whole.rows(cut, 100);
    Context ctx = Context::serial();
    second.h0 = run_scan(first, [&](const auto&... a) { selective_scan<double>(ctx, a...); }).h;
    const auto late = run(second);
    first.grad_h = late.h;
    const auto early = run(first);
    expect_near(early.h, expected.h, 1e-13, "h");
    expect_near(early.u, expected.u.rows(0, cut), 1e-13, "u");
    expect_near(late.dt, expected.dt.rows(cut, 100), 1e-13, "dt");
    for (const auto part : {&ScanGradients<double>::A, &ScanGradients<double>::D, &ScanGradients<double>::dt_bias}) {
      Rows<double> sum = early.*part;
      for (std::int64_t i = 0; i < sum.size(); ++i) sum[i] += (late.*part)[i];
      expect_near(sum, expected.*part, 1e-12, "summed over tokens");
    }
  }
}

TEST(SelectiveScanBackward, KeepsANanToItsSequence) {
  const ScanOptions options{.lengths = {40, 40}, .D = 37, .N = 7};
  ScanCase<float> clean(options), spoilt(options);
  spoilt.dt[5 * 37 + 3] = std::nanf("");
  const auto expected = run(clean), out = run(spoilt);
  expect_same_bits(out.B.rows(40, 80), expected.B.rows(40, 80), "B");
  expect_same_bits(out.u.rows(40, 80), expected.u.rows(40, 80), "u");
  // Within the sequence, the other channels stay clean.
  for (std::int64_t t = 0; t < 40; ++t) EXPECT_EQ(out.u[t * 37 + 4], expected.u[t * 37 + 4]);
}

TEST(SelectiveScanBackward, PassesNoGradientThroughADecayOfMinusInfinity) {
  for (const double step : {0.0, 0.5}) {
    ScanCase<float> c({.lengths = {20}, .D = 7, .N = 4, .bias = false, .softplus = false});
    c.dt.fill([&](std::int64_t) { return step; });
    c.A.fill([](std::int64_t) { return -std::numeric_limits<double>::infinity(); });
    const auto g = run(c);
    for (const auto& [name, rows] : g.all()) {
      for (std::int64_t i = 0; i < rows->size(); ++i) ASSERT_TRUE(std::isfinite((*rows)[i])) << name;
    }
    if (step > 0) {
      for (std::int64_t i = 0; i < g.A.size(); ++i) EXPECT_EQ(g.A[i], 0);
    }
  }
}

}  // namespace
}  // namespace stepwell::ops
