// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// Faults that users of other implementations have met, as far as they concern the selective scan.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

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
using testing::ScanOutputs;

template <class T>
ScanOutputs<T> forward(ScanCase<T>& c) {
  Context ctx = Context::serial();
  return run_scan(c, [&](const auto& in, const auto& segments, auto h, auto y, auto) {
    selective_scan<T>(ctx, in, segments, h, y);
  });
}
template <class T>
ScanGradients<T> backward(ScanCase<T>& c) {
  Context ctx = Context::serial();
  return run_backward(c, [&](const auto&... a) { selective_scan_backward<T>(ctx, a...); });
}

template <class T>
void expect_reference(ScanCase<double>& wide, double tolerance) {
  ScanCase<T> c(wide);
  const auto expected = run_scan(wide, [](const auto&... a) { reference::selective_scan<double>(a...); });
  const auto gradients = run_backward(wide, [](const auto&... a) { reference::selective_scan_backward<double>(a...); });
  const auto out = forward(c);
  expect_near(out.y, expected.y, tolerance, "y");
  expect_near(out.h, expected.h, tolerance, "h");
  const auto g = backward(c);
  for (std::size_t i = 0; i < g.all().size(); ++i) {
    expect_near(*g.all()[i].second, *gradients.all()[i].second, tolerance, "gradient of " + g.all()[i].first);
  }
}

// Decays of 1e−12, then from 1e−30 to 1, then one channel in 16 at 1e−38 and the rest at 0.99.
TEST(FieldReport, P1_TinyDecays) {
  for (const std::int64_t T : {64, 130}) {
    for (int kind = 0; kind < 3; ++kind) {
      ScanCase<double> c({.lengths = {T}, .D = 32, .N = 1, .bias = false, .softplus = false});
      c.A.fill([](std::int64_t) { return -1; });
      c.dt.fill([&](std::int64_t i) -> double {
        if (kind == 0) return 27.6;
        if (kind == 1) return 69.0 * static_cast<double>(i * 37 % 101) / 101;
        return i % 16 == 0 ? 87.4 : 0.01;
      });
      expect_reference<double>(c, 1e-11);
      expect_reference<float>(c, 2e-5);
    }
  }
}

// A sweep over A_log and the step's pre-activation: the decay is in [0, 1] and never NaN, the step accurate where it is
// small, every gradient finite.
TEST(FieldReport, P4_GateFormulaNeverGivesNaN) {
  const std::vector<double> logs{-100, -20, 0, 5, 88, 89, 100};
  const std::vector<double> raws{-200, -100, -30, -15, -3, 0, 19.9, 20.1, 50, 1e4};
  const auto L = static_cast<std::int64_t>(raws.size()), D = static_cast<std::int64_t>(logs.size());
  // One sequence per pre-activation, one token each; h0 = 1 and u = 0, so that h is the decay.
  ScanOptions options{.lengths = std::vector<std::int64_t>(raws.size(), 1), .D = D, .N = 1, .z = false, .bias = false};
  ScanCase<float> c(options);
  c.u.fill([](std::int64_t) { return 0; });
  c.h0.fill([](std::int64_t) { return 1; });
  c.dt.fill([&](std::int64_t i) { return raws[i / D]; });
  c.A.fill([&](std::int64_t i) { return -static_cast<float>(std::exp(logs[i])); });  // −inf from 89 on
  const auto out = forward(c);
  for (std::int64_t t = 0; t < L; ++t) {
    for (std::int64_t d = 0; d < D; ++d) {
      const double A = std::min<double>(std::exp(logs[d]), std::numeric_limits<float>::max());
      // A step below the smallest normal number counts as 0.
      const double step = reference::softplus(raws[t]);
      const double expected = std::exp(-A * (step < std::numeric_limits<float>::min() ? 0 : step));
      EXPECT_NEAR(out.h[t * D + d], expected, 1e-6) << "A_log " << logs[d] << ", step " << raws[t];
    }
  }
  auto gradients = backward(c);
  for (const auto& [name, rows] : gradients.all()) {
    for (std::int64_t i = 0; i < rows->size(); ++i) EXPECT_TRUE(std::isfinite((*rows)[i])) << name << " " << i;
  }
}

// The step of a pre-activation: h = step when u = B = 1 and h0 = 0.
float step_of(float raw) {
  ScanCase<float> c({.lengths = {1}, .D = 1, .N = 1, .z = false, .skip = false, .bias = false});
  c.u[0] = c.B[0] = 1;
  c.h0[0] = 0;
  c.dt[0] = raw;
  return forward(c).h[0];
}
TEST(FieldReport, P4_SmallStepsKeepTheirDigits) { EXPECT_NEAR(step_of(-15), 3.0590223e-7, 1e-6 * 3.0590223e-7); }
TEST(FieldReport, P11_StepsAreNotClamped) { EXPECT_NEAR(step_of(-12), 6.1441935e-6, 1e-6 * 6.1441935e-6); }

// A pure accumulator over a million steps: exact 1000. Plain float32 summation is documented to stay within 1e-2.
TEST(FieldReport, P9_SlowDriftOfAPureAccumulator) {
  const std::int64_t T = 1000000;
  const std::vector<float> ones(static_cast<std::size_t>(T), 1.0f), steps(static_cast<std::size_t>(T), 1e-3f);
  std::vector<float> y(static_cast<std::size_t>(T));
  const float A = -std::exp(-20.0f);
  float h = 0;
  SelectiveScanInputs<float> in;
  in.u = View<const float, 2>::contiguous(ones.data(), {T, 1});
  in.dt = View<const float, 2>::contiguous(steps.data(), {T, 1});
  in.A = View<const float, 2>::contiguous(&A, {1, 1});
  in.B = in.C = View<const float, 3>::contiguous(ones.data(), {T, 1, 1});
  in.softplus = false;
  Context ctx = Context::serial();
  selective_scan<float>(ctx, in, Segments::uniform(1, T), View<float, 3>::contiguous(&h, {1, 1, 1}),
                        View<float, 2>::contiguous(y.data(), {T, 1}));
  EXPECT_NEAR(h, 1000, 10);
}

// X2: a changed token changes no bit before it, and does change what comes at and after it.
TEST(FieldReport, P12_TheFutureDoesNotChangeThePast) {
  const std::int64_t T = 512, D = 7;
  const ScanOptions options{.lengths = {T}, .D = D, .N = 4};
  const simd::Isa best = simd::current_isa();
  for (const simd::Isa isa : simd::supported_isas()) {
    simd::set_isa(isa);
    ScanCase<float> c(options);
    const auto before = forward(c);
    for (const std::int64_t p : {1, 63, 64, 65, 400}) {
      ScanCase<float> changed(options);
      for (std::int64_t d = 0; d < D; ++d) {
        changed.u[p * D + d] += 1;
        changed.dt[p * D + d] += 9;
        changed.z[p * D + d] += 1;
      }
      const auto after = forward(changed);
      expect_same_bits(after.y.rows(0, p), before.y.rows(0, p), "before");
      EXPECT_NE(after.y[p * D], before.y[p * D]);
      EXPECT_NE(after.y[(p + 1) * D], before.y[(p + 1) * D]);
    }
  }
  simd::set_isa(best);
}
TEST(FieldReport, P12_InformationCrossesEveryBorder) {
  ScanCase<float> c({.lengths = {512}, .D = 1, .N = 1, .z = false, .skip = false, .bias = false, .softplus = false});
  c.h0[0] = 0;
  c.A[0] = -1;
  c.dt.fill([](std::int64_t) { return -std::log(0.999); });
  c.B.fill([](std::int64_t) { return 1; });
  c.C.fill([](std::int64_t) { return 1; });
  c.u.fill([](std::int64_t i) { return i == 0; });
  const auto out = forward(c);
  EXPECT_NEAR(out.y[511] / out.y[0], std::pow(0.999, 511), 1e-4);
}

// Memory that ends at a page nobody may touch.
class Guarded {
 public:
  Guarded(const void* data, std::size_t bytes) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    size_ = (bytes + page_ - 1) / page_ * page_ + page_;
    base_ = static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + size_ - page_, page_, PROT_NONE);
    data_ = base_ + size_ - page_ - bytes;
    std::memcpy(data_, data, bytes);
  }
  ~Guarded() { munmap(base_, size_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::size_t page_, size_;
  char *base_, *data_;
};

// Lengths that are no multiple of anything, bias with softplus, a state from before: every gradient as the
// reference has it. Rows lie apart with NaN between them (Rows).
TEST(FieldReport, P14_RaggedLengths) {
  for (const std::int64_t T : {1, 2, 15, 16, 17, 63, 64, 65, 127, 129, 255, 257, 300, 1000}) {
    ScanCase<double> c({.lengths = {T}, .D = 3, .N = 4});
    SCOPED_TRACE(T);
    expect_reference<double>(c, 1e-11);
    expect_reference<float>(c, 2e-5);
  }
}
TEST(FieldReport, P14_ReadsAndWritesNothingBehindItsArrays) {
  const simd::Isa best = simd::current_isa();
  for (const simd::Isa isa : simd::supported_isas()) {
    simd::set_isa(isa);
    for (const std::int64_t D : {1, 3, 7, 17, 33}) {
      const std::int64_t T = 67, N = 3;
      ScanCase<float> c({.lengths = {T}, .D = D, .N = N});
      const auto expected = forward(c);
      const auto gradients = backward(c);
      const auto guard = [](const Rows<float>& rows) {
        const Rows<float> dense = rows.with_gap(0);
        std::vector<float> values;
        for (std::int64_t i = 0; i < dense.size(); ++i) values.push_back(dense[i]);
        return Guarded(values.data(), values.size() * sizeof(float));
      };
      const Guarded u = guard(c.u), dt = guard(c.dt), A = guard(c.A), B = guard(c.B), C = guard(c.C), z = guard(c.z);
      const Guarded skip = guard(c.skip), bias = guard(c.bias), h = guard(c.h0), h0 = guard(c.h0), y = guard(c.u);
      const Guarded gy = guard(c.grad_y), gh = guard(c.grad_h), gu = guard(c.u), gdt = guard(c.u), gA = guard(c.A);
      const Guarded gB = guard(c.B), gC = guard(c.C), gz = guard(c.z), gD = guard(c.skip), gbias = guard(c.bias);
      const Guarded gh0 = guard(c.h0);
      const auto two = [](const Guarded& g, std::int64_t I, std::int64_t J) {
        return View<float, 2>::contiguous(g.data<float>(), {I, J});
      };
      const auto three = [](const Guarded& g, std::int64_t I, std::int64_t J, std::int64_t K) {
        return View<float, 3>::contiguous(g.data<float>(), {I, J, K});
      };
      SelectiveScanInputs<float> in;
      in.u = two(u, T, D);
      in.dt = two(dt, T, D);
      in.A = two(A, D, N);
      in.B = three(B, T, 1, N);
      in.C = three(C, T, 1, N);
      in.z = two(z, T, D);
      in.D = skip.data<float>();
      in.dt_bias = bias.data<float>();
      Context ctx = Context::serial();
      selective_scan<float>(ctx, in, c.segments(), three(h, 1, N, D), two(y, T, D));
      for (std::int64_t i = 0; i < T * D; ++i) ASSERT_EQ(y.data<float>()[i], expected.y[i]);
      selective_scan_backward<float>(
          ctx, in, c.segments(), three(h0, 1, N, D), two(gy, T, D), three(gh, 1, N, D),
          {two(gu, T, D), two(gdt, T, D), two(gA, D, N), three(gB, T, 1, N), three(gC, T, 1, N), two(gz, T, D),
           gD.data<float>(), gbias.data<float>(), three(gh0, 1, N, D)});
      for (std::int64_t i = 0; i < T * D; ++i) ASSERT_EQ(gu.data<float>()[i], gradients.u[i]);
    }
  }
  simd::set_isa(best);
}

// The same tokens as one run, in segments from the carried state; packed with others; and one by one.
TEST(FieldReport, P22_SegmentsContinueFromTheState) {
  ScanCase<float> whole({.lengths = {256}, .D = 9, .N = 5});
  const auto expected = forward(whole);
  const std::vector<std::vector<std::int64_t>> plans{{64, 64, 64, 64}, {1, 255}, {255, 1}, {3, 0, 2, 1, 0, 250}};
  for (auto plan : plans) {
    ScanOutputs<float> joined{Rows<float>(256, 9), whole.h0, {}};
    std::int64_t first = 0;
    for (const std::int64_t length : plan) {
      ScanCase<float> part = whole.rows(first, first + length);
      part.h0 = joined.h;
      const auto out = forward(part);
      joined.y.set_rows(first, out.y);
      joined.h = out.h;
      first += length;
    }
    expect_same_bits(joined.y, expected.y, "y");
    expect_same_bits(joined.h, expected.h, "h");
  }
}

// Packed sequences equal separate runs bit for bit; an empty one returns its state, and passes the gradient
// straight through.
TEST(FieldReport, P25_PackedAndEmptySequences) {
  ScanCase<float> packed({.lengths = {0, 3, 0, 70, 1, 0}, .D = 9, .N = 5});
  const auto out = forward(packed);
  const auto g = backward(packed);
  for (std::int64_t s = 0; s < packed.sequences(); ++s) {
    const std::int64_t first = packed.offsets[s], last = packed.offsets[s + 1];
    ScanCase<float> alone = packed.rows(first, last);
    alone.h0 = packed.h0.rows(s, s + 1);
    alone.grad_h = packed.grad_h.rows(s, s + 1);
    const auto out_alone = forward(alone);
    expect_same_bits(out_alone.y, out.y.rows(first, last), "y");
    expect_same_bits(out_alone.h, out.h.rows(s, s + 1), "h");
    const auto g_alone = backward(alone);
    expect_same_bits(g_alone.u, g.u.rows(first, last), "gradient of u");
    expect_same_bits(g_alone.B, g.B.rows(first, last), "gradient of B");
    expect_same_bits(g_alone.h, g.h.rows(s, s + 1), "gradient of h");
    if (first == last) {
      expect_same_bits(out_alone.h, alone.h0, "state of an empty sequence");
      expect_same_bits(g_alone.h, alone.grad_h, "gradient through an empty sequence");
    }
  }
}

// y_t = a_t·y_{t−1} + b_t with decays of 0, 1 and 1e−30: no division by a decay, and the first decay's gradient is
// 0 exactly when there is no state before it.
TEST(FieldReport, P34_GradientOfTheDecayOfALinearRecurrence) {
  for (const std::int64_t T : {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 1000}) {
    ScanCase<double> c({.lengths = {T}, .D = 1, .N = 1, .z = false, .skip = false, .bias = false, .softplus = false});
    const double steps[] = {1e4, 0.0, 69.0775527898, 0.1};  // decays 0, 1, 1e−30, 0.9
    c.A[0] = -1;
    c.dt.fill([&](std::int64_t i) { return steps[i % 4]; });
    expect_reference<double>(c, 1e-11);
    if (T < 40) {
      const auto g = backward(c);
      // One-sided at 0: a step of 0 is the border of the range, but the formulas continue beyond it.
      expect_finite_differences("dt", c.dt, g.dt, [&] {
        const auto out = forward(c);
        double sum = out.h[0] * c.grad_h[0];
        for (std::int64_t i = 0; i < out.y.size(); ++i) sum += out.y[i] * c.grad_y[i];
        return sum;
      });
    }
    if (T == 0) continue;
    c.h0[0] = 0;
    c.u[0] = 0;
    EXPECT_EQ(backward(c).dt[0], 0) << "nothing flows through the first decay";
  }
}

// Scratch memory: bounded by a tenth of inputs and gradients, and it does not grow with the batch.
std::size_t backward_scratch(std::int64_t batch, std::int64_t T, std::int64_t D) {
  ScanCase<float> c({.lengths = std::vector<std::int64_t>(static_cast<std::size_t>(batch), T), .D = D, .N = 16});
  Context ctx = Context::serial();
  run_backward(c, [&](const auto&... a) { selective_scan_backward<float>(ctx, a...); });
  return ctx.scratch().capacity();
}
TEST(FieldReport, P36_BackwardKeepsFewStates) {
  const std::size_t token_row = 256 * sizeof(float);
  const std::size_t inputs_and_gradients = 7 * 2048 * token_row;  // u, dt, z, their gradients, grad_y
  EXPECT_LE(backward_scratch(1, 2048, 256), inputs_and_gradients / 10);
  EXPECT_LE(backward_scratch(64, 64, 256), 2 * backward_scratch(16, 64, 256));
}

TEST(FieldReport, P41_TwentyRunsGiveTheSameBits) {
  ScanCase<float> c({.lengths = {70, 33}, .D = 40, .N = 5});
  Context ctx = Context::parallel(3);
  const auto run = [&] {
    auto out = run_scan(c, [&](const auto&... a) { selective_scan<float>(ctx, a...); });
    auto g = run_backward(c, [&](const auto&... a) { selective_scan_backward<float>(ctx, a...); });
    return std::pair(std::move(out), std::move(g));
  };
  const auto first = run();
  for (int i = 1; i < 20; ++i) {
    const auto again = run();
    expect_same_bits(again.first.y, first.first.y, "y");
    expect_same_bits(again.first.h, first.first.h, "h");
    for (std::size_t j = 0; j < first.second.all().size(); ++j) {
      expect_same_bits(*again.second.all()[j].second, *first.second.all()[j].second, first.second.all()[j].first);
    }
  }
}
// A row's bits do not depend on how many other rows there are.
TEST(FieldReport, P41_RowsOfABatchAreOnTheirOwn) {
  for (const std::int64_t batch : {2, 4, 5, 8, 15, 33}) {
    ScanCase<float> c({.lengths = std::vector<std::int64_t>(static_cast<std::size_t>(batch), 20), .D = 40, .N = 5});
    const auto out = forward(c);
    ScanCase<float> row = c.rows(0, 20);
    row.h0 = c.h0.rows(0, 1);
    expect_same_bits(forward(row).y, out.y.rows(0, 20), "row 0 of " + std::to_string(batch));
  }
}

}  // namespace
}  // namespace stepwell::ops
