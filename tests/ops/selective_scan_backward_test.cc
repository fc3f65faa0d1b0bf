// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "stepwell/ops/selective_scan.h"

#include "ops/selective_scan/reference.h"
#include "tests/ops/scan_case.h"

namespace stepwell::ops {
namespace {

using testing::expect_finite_differences;
using testing::Rows;
using testing::run_backward;
using testing::run_scan;
using testing::ScanCase;
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

}  // namespace
}  // namespace stepwell::ops
