// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "stepwell/ops/elementwise.h"
#include "stepwell/ops/norm.h"

#include "bench/ops/cases.h"

namespace stepwell::bench {

namespace {

// 48 rows of 768: 144 KiB in and as much out, within L2.
constexpr std::int64_t kRows = 48, kWidth = 768;

Workload rewriting() {
  Workload work;
  work.unit = "Gel/s";
  work.units = 1e-9 * kRows * kWidth;
  work.bound = Bound::L2;
  work.cost = 4.0 * kRows * kWidth;
  return work;
}

Workload unary(ops::Unary op) {
  const Tensor x = spread({kRows, kWidth}, -8, 8), y = Tensor::zeros({kRows, kWidth});
  Workload work = rewriting();
  work.run = [=](Context& ctx) { ops::unary(ctx, op, x, y); };
  return work;
}

Workload rms_norm() {
  const ops::RmsNormInputs in{.x = spread({kRows, kWidth}, -2, 2), .z = {}, .weight = spread({kWidth}, 0, 2)};
  const Tensor y = Tensor::zeros({kRows, kWidth});
  Workload work = rewriting();
  work.run = [=](Context& ctx) { ops::rms_norm(ctx, in, y); };
  return work;
}

}  // namespace

std::vector<Case> vector_cases() {
  using ops::Unary;
  std::vector<Case> cases;
  const auto add = [&](const char* name, Unary op) {
    cases.push_back({"elementwise", std::string(name) + " 48x768", [=] { return unary(op); }});
  };
  add("exp", Unary::Exp);
  add("softplus", Unary::Softplus);
  add("silu", Unary::Silu);
  add("tanh", Unary::Tanh);
  add("gelu (erf)", Unary::GeluErf);
  cases.push_back({"rms_norm", "48x768", rms_norm});
  return cases;
}

}  // namespace stepwell::bench
