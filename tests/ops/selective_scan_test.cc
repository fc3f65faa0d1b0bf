// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/selective_scan.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/simd/isa.h"

#include "ops/selective_scan/reference.h"
#include "tests/ops/scan_case.h"

namespace stepwell::ops {
namespace {

using testing::expect_near;
using testing::expect_same_bits;
using testing::Rows;
using testing::run_scan;
using testing::ScanCase;
using testing::ScanOptions;
using testing::ScanOutputs;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
ScanOutputs<T> run(ScanCase<T>& c, Context& ctx) {
  return run_scan(c, [&](const auto& in, const auto& segments, auto h, auto y, auto) {
    selective_scan<T>(ctx, in, segments, h, y);
  });
}
template <class T>
ScanOutputs<T> run(ScanCase<T>& c) {
  Context ctx = Context::serial();
  return run(c, ctx);
}
template <class T>
ScanOutputs<T> run_reference(ScanCase<T>& c) {
  return run_scan(c, [](const auto&... a) { reference::selective_scan<T>(a...); });
}

template <class T>
void expect_same_bits(const ScanOutputs<T>& actual, const ScanOutputs<T>& expected, const std::string& what) {
  expect_same_bits(actual.y, expected.y, what + ", y");
  expect_same_bits(actual.h, expected.h, what + ", h");
}

// Both float types against the float64 reference, states after every token included.
void expect_reference(const ScanOptions& options) {
  SCOPED_TRACE(options.to_string());
  ScanCase<double> wide(options);
  ScanCase<float> narrow(wide);
  const auto expected = run_reference(wide);
  Context ctx = Context::serial();
  const auto check = [&](auto& c, double tolerance) {
    const auto out = run(c, ctx);
    expect_near(out.y, expected.y, tolerance, "y");
    expect_near(out.h, expected.h, tolerance, "h");
    const auto kept = run_scan(c, [&](const auto&... a) { selective_scan(ctx, a...); });
    expect_same_bits(kept, out, "with h_all");
    expect_near(kept.h_all, expected.h_all, tolerance, "h_all");
  };
  check(wide, 1e-13);
  check(narrow, 5e-6);
}

TEST(SelectiveScan, EqualsTheReferenceForAnyLength) {
  for (const std::int64_t T : {0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 255, 257, 300, 1000}) {
    expect_reference({.lengths = {T}, .D = 5, .N = 7});
  }
}

TEST(SelectiveScan, EqualsTheReferenceForAnyWidth) {
  for (const std::int64_t D : {0, 1, 2, 3, 5, 8, 15, 17, 31, 32, 33, 64, 65, 100, 300}) {
    expect_reference({.lengths = {37}, .D = D, .N = 5});
  }
  for (const std::int64_t N : {0, 1, 2, 5, 7, 16, 64, 96}) expect_reference({.lengths = {35}, .D = 19, .N = N});
}

TEST(SelectiveScan, EqualsTheReferenceForEveryOption) {
  for (int bits = 0; bits < 64; ++bits) {
    ScanOptions options{.lengths = {40, 0, 7}, .D = 35, .N = 4};
    options.z = bits & 1;
    options.skip = bits & 2;
    options.bias = bits & 4;
    options.softplus = bits & 8;
    options.constant_bc = bits & 16;
    if (bits & 32) options.discretisation = Discretisation::ZeroOrder;
    expect_reference(options);
  }
}

TEST(SelectiveScan, GivesEachGroupOfChannelsItsOwnBAndC) {
  for (const std::int64_t G : {1, 2, 3, 6, 18}) expect_reference({.lengths = {33}, .D = 18, .N = 5, .G = G});
  expect_reference({.lengths = {33}, .D = 100, .N = 5, .G = 2});
  expect_reference({.lengths = {9}, .D = 120, .N = 5, .G = 3, .discretisation = Discretisation::ZeroOrder});
}

TEST(SelectiveScan, TakesNoSequencesAtAll) { expect_reference({.lengths = {}, .D = 3, .N = 2}); }

// Steps of every size: products step·A far beyond the range of the exponential.
TEST(SelectiveScan, EqualsTheReferenceForStepsOfAnySize) {
  for (const double step : {-40.0, -12.0, -5.0, 0.0, 5.0, 19.0, 40.0, 200.0}) {
    expect_reference({.lengths = {50}, .D = 40, .N = 16, .step = step});
    expect_reference({.lengths = {50}, .D = 3, .N = 4, .discretisation = Discretisation::ZeroOrder, .step = step});
  }
}

// X1: the first k tokens, then the rest from the carried state.
template <class T>
void expect_splits(const ScanOptions& options, const std::vector<std::int64_t>& cuts) {
  ScanCase<T> whole(options);
  const auto expected = run(whole);
  ScanOutputs<T> joined{Rows<T>(whole.tokens(), options.D), whole.h0, {}};
  std::int64_t first = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::int64_t last = i < cuts.size() ? cuts[i] : whole.tokens();
    ScanCase<T> part = whole.rows(first, last);
    part.h0 = joined.h;
    const auto out = run(part);
    joined.y.set_rows(first, out.y);
    joined.h = out.h;
    first = last;
  }
  expect_same_bits(joined, expected, options.to_string() + " in " + std::to_string(cuts.size() + 1) + " parts");
}

TEST(SelectiveScan, GivesTheSameBitsHoweverASequenceIsSplit) {
  for (const double step : {-1.0, 6.0}) {  // within and beyond the range of the unclamped exponential
    const ScanOptions options{.lengths = {100}, .D = 37, .N = 16, .step = step};
    std::vector<std::int64_t> every;
    for (std::int64_t t = 1; t < 100; ++t) every.push_back(t);
    for (const auto& cuts :
         std::vector<std::vector<std::int64_t>>{every, {1}, {99}, {32, 64}, {7, 7, 10, 90}, {0, 50}}) {
      expect_splits<float>(options, cuts);
      expect_splits<double>(options, cuts);
    }
  }
}

template <class T>
void expect_same_bits_for_any_number_of_threads() {
  ScanCase<T> c({.lengths = {70, 3, 0, 65}, .D = 200, .N = 9, .step = 3});
  const auto expected = run(c);
  for (const int threads : {2, 3, 4}) {
    Context ctx = Context::parallel(threads);
    expect_same_bits(run(c, ctx), expected, std::to_string(threads) + " threads");
  }
}
TEST(SelectiveScan, GivesTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_for_any_number_of_threads<float>();
  expect_same_bits_for_any_number_of_threads<double>();
}

// X7, on the sets with fused multiply-add; the others within rounding.
template <class T>
void expect_same_bits_on_every_instruction_set(const ScanOptions& options) {
  ScanCase<T> c(options);
  const simd::Isa best = simd::current_isa();
  const auto expected = run(c);
  for (const simd::Isa isa : simd::supported_isas()) {
    simd::set_isa(isa);
    const auto out = run(c);
    const std::string what = std::string(simd::isa_name(isa)) + " " + options.to_string();
    if (simd::has_fma(isa)) {
      expect_same_bits(out, expected, what);
    } else {
      expect_near(out.y, expected.y, sizeof(T) == 4 ? 5e-6 : 1e-13, what);
    }
  }
  simd::set_isa(best);
}
TEST(SelectiveScan, GivesTheSameBitsOnEveryInstructionSet) {
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

TEST(SelectiveScan, GivesTheSameBitsForAnyRowStride) {
  ScanCase<float> c({.lengths = {45}, .D = 37, .N = 7});
  const auto expected = run(c);
  for (Rows<float>* rows : {&c.u, &c.dt, &c.A, &c.B, &c.C, &c.z}) *rows = rows->with_gap(0);
  expect_same_bits(run(c), expected, "contiguous");
  for (Rows<float>* rows : {&c.u, &c.dt, &c.A, &c.B, &c.C, &c.z}) *rows = rows->with_gap(27);
  expect_same_bits(run(c), expected, "far apart");
}

// With a step of 0 a state stays what it is, bit for bit, whatever A.
TEST(SelectiveScan, LeavesTheStateAloneForAStepOfZero) {
  for (const auto form : {Discretisation::Euler, Discretisation::ZeroOrder}) {
    ScanCase<float> c({.lengths = {20}, .D = 7, .N = 4, .bias = false, .softplus = false, .discretisation = form});
    c.dt.fill([](std::int64_t) { return 0; });
    c.A[5] = -static_cast<float>(kInfinity);
    c.A[6] = -std::numeric_limits<float>::max();
    expect_same_bits(run(c).h, c.h0, "h");
  }
}

// With a decay of exp(−inf) or an immense step nothing of the old state is left: h is step·u·B.
TEST(SelectiveScan, ForgetsEverythingForADecayOfMinusInfinity) {
  const std::int64_t D = 5, N = 3;
  for (const bool infinite : {true, false}) {
    ScanCase<float> c({.lengths = {1}, .D = D, .N = N, .bias = false, .softplus = false});
    c.dt.fill([&](std::int64_t) { return infinite ? 0.5 : 1e30; });
    if (infinite) c.A.fill([](std::int64_t) { return -kInfinity; });
    const auto out = run(c);
    for (std::int64_t n = 0; n < N; ++n) {
      for (std::int64_t d = 0; d < D; ++d) EXPECT_EQ(out.h[n * D + d], c.dt[d] * c.u[d] * c.B[n]);
    }
  }
}

TEST(SelectiveScan, KeepsANanToItsSequenceAndChannel) {
  const ScanOptions options{.lengths = {40, 40}, .D = 37, .N = 7};
  ScanCase<float> clean(options), spoilt(options);
  const std::int64_t bad_token = 5, bad_channel = 3;
  spoilt.dt[bad_token * 37 + bad_channel] = std::numeric_limits<float>::quiet_NaN();
  const auto expected = run(clean), out = run(spoilt);
  for (std::int64_t t = 0; t < 80; ++t) {
    for (std::int64_t d = 0; d < 37; ++d) {
      const float y = out.y[t * 37 + d];
      if (d == bad_channel && t >= bad_token && t < 40) {
        EXPECT_TRUE(std::isnan(y)) << t;
      } else {
        EXPECT_EQ(y, expected.y[t * 37 + d]) << t << " " << d;
      }
    }
  }
}

TEST(SelectiveScan, TurnsANanInAIntoANan) {
  ScanCase<float> c({.lengths = {3}, .D = 2, .N = 2});
  // A payload that, taken for an exponent, would make a number of it.
  c.A[1] = std::bit_cast<float>(0xFFFFFFFFu);
  EXPECT_TRUE(std::isnan(run(c).h[2]));
}

}  // namespace
}  // namespace stepwell::ops
