// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/mlstm.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/simd/isa.h"

#include "ops/mlstm/reference.h"
#include "tests/ops/rows.h"

namespace stepwell::ops {
namespace {

using testing::expect_near;
using testing::expect_same_bits;
using testing::Rows;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct CellOptions {
  std::vector<std::int64_t> lengths{5};
  std::int64_t H = 2, K = 5, V = 7;
  double gates = 1, input_shift = 0;  // size of the pre-activations, and where those of i lie
  InputGate input_gate = InputGate::Exponential;
  bool normalise = true;
  double eps = 1e-6;
  bool state = true;  // a random one; else C = n = 0 and m = m0
  double m0 = 0;
  std::uint64_t seed = 1;

  std::string to_string() const {
    std::string text = "T";
    for (auto length : lengths) text += " " + std::to_string(length);
    return text + " H " + std::to_string(H) + " K " + std::to_string(K) + " V " + std::to_string(V) + " gates " +
           std::to_string(gates) + (input_gate == InputGate::Sigmoid ? " sigmoid" : "") +
           (normalise ? "" : " not normalised") + " shift " + std::to_string(input_shift);
  }
};

template <class T>
struct Memory {
  Rows<T> C, n, m;
  MlstmState<T> state(const CellOptions& o) {
    const View<T, 2> flat = C.view2();
    return {{flat.data,
             {flat.extent[0], state_units(o.V), o.K, kStateUnit},
             {flat.stride[0], o.K * kStateUnit, kStateUnit, 1}},
            n.view2(),
            m.data()};
  }
};

template <class T>
struct CellCase {
  CellOptions options;
  std::vector<std::int64_t> offsets{0};
  Rows<T> q, k, v, i, f, grad_h;
  Memory<T> memory, grad_memory;

  explicit CellCase(const CellOptions& o) : options(o) {
    for (auto length : o.lengths) offsets.push_back(offsets.back() + length);
    std::mt19937_64 engine(o.seed);
    std::normal_distribution<double> normal;
    const auto rows = [&](std::int64_t I, std::int64_t J, std::int64_t L, double size, double shift = 0) {
      Rows<T> r(I, J, L);
      r.fill([&](std::int64_t) { return static_cast<float>(shift + size * normal(engine)); });
      return r;
    };
    const std::int64_t L = offsets.back(), S = sequences() * o.H, size = state_units(o.V) * o.K * kStateUnit;
    q = rows(L, o.H, o.K, 1);
    k = rows(L, o.H, o.K, 1);
    v = rows(L, o.H, o.V, 1);
    i = rows(L, o.H, 1, o.gates, o.input_shift);
    f = rows(L, o.H, 1, o.gates, 1);
    grad_h = rows(L, o.H, o.V, 1);
    const double filled = o.state ? 1 : 0;
    memory = {rows(S, size, 1, filled), rows(S, o.K, 1, filled), rows(1, S, 1, filled, o.state ? 0 : o.m0)};
    grad_memory = {rows(S, size, 1, 1), rows(S, o.K, 1, 1), rows(1, S, 1, 1)};
  }
  template <class U>
  explicit CellCase(const CellCase<U>& c)
      : options(c.options),
        offsets(c.offsets),
        q(c.q.template as<T>()),
        k(c.k.template as<T>()),
        v(c.v.template as<T>()),
        i(c.i.template as<T>()),
        f(c.f.template as<T>()),
        grad_h(c.grad_h.template as<T>()),
        memory{c.memory.C.template as<T>(), c.memory.n.template as<T>(), c.memory.m.template as<T>()},
        grad_memory{c.grad_memory.C.template as<T>(), c.grad_memory.n.template as<T>(),
                    c.grad_memory.m.template as<T>()} {}

  std::int64_t sequences() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  Segments segments() const { return Segments::from_offsets(offsets, offsets.back()); }
  // Tokens first … last−1 of the first sequence.
  CellCase part(std::int64_t first, std::int64_t last) const {
    CellCase c = *this;
    c.offsets = {0, last - first};
    for (auto member : {&CellCase::q, &CellCase::k, &CellCase::v, &CellCase::i, &CellCase::f, &CellCase::grad_h}) {
      c.*member = (this->*member).rows(first, last);
    }
    return c;
  }
  MlstmInputs<T> inputs() {
    MlstmInputs<T> in;
    in.q = q.view3();
    in.k = k.view3();
    in.v = v.view3();
    in.i = i.view2();
    in.f = f.view2();
    in.scale = static_cast<T>(1 / std::sqrt(static_cast<double>(options.K)));
    in.input_gate = options.input_gate;
    in.normalise = options.normalise;
    in.eps = static_cast<T>(options.eps);
    return in;
  }
};

template <class T>
struct CellOutputs {
  Rows<T> h;
  Memory<T> last;
};

template <class T>
CellOutputs<T> run(CellCase<T>& c, Context& ctx, const MlstmOptions<T>& options = {}) {
  CellOutputs<T> out{Rows<T>(c.offsets.back(), c.options.H, c.options.V), c.memory};
  mlstm<T>(ctx, c.inputs(), c.segments(), out.last.state(c.options), out.h.view3(), options);
  return out;
}
template <class T>
CellOutputs<T> run(CellCase<T>& c) {
  Context ctx = Context::serial();
  return run(c, ctx);
}
template <class T>
CellOutputs<T> run_reference(CellCase<T>& c) {
  CellOutputs<T> out{Rows<T>(c.offsets.back(), c.options.H, c.options.V), c.memory};
  reference::mlstm<T>(c.inputs(), c.segments(), out.last.state(c.options), out.h.view3());
  return out;
}

template <class T>
struct CellGradients {
  Rows<T> q, k, v, i, f;
  Memory<T> memory;
};

template <class T>
Rows<T> poisoned(Rows<T> rows) {
  rows.fill([](std::int64_t) { return std::numeric_limits<T>::quiet_NaN(); });
  return rows;
}

template <class T>
CellGradients<T> run_backward(CellCase<T>& c, Context& ctx, bool reference = false) {
  CellGradients<T> g{poisoned(c.q), poisoned(c.k), poisoned(c.v),
                     poisoned(c.i), poisoned(c.f), {poisoned(c.memory.C), poisoned(c.memory.n), poisoned(c.memory.m)}};
  MlstmGradients<T> out;
  out.q = g.q.view3();
  out.k = g.k.view3();
  out.v = g.v.view3();
  out.i = g.i.view2();
  out.f = g.f.view2();
  out.state = g.memory.state(c.options);
  const auto constant = [](const MlstmState<T>& state) { return MlstmState<const T>{state.C, state.n, state.m}; };
  const MlstmState<const T> start = constant(c.memory.state(c.options));
  const MlstmState<const T> grad_last = constant(c.grad_memory.state(c.options));
  if (reference) {
    reference::mlstm_backward<T>(c.inputs(), c.segments(), start, c.grad_h.view3(), grad_last, out);
  } else {
    CellOutputs<T> forward = run(c, ctx);
    mlstm_backward<T>(ctx, c.inputs(), c.segments(), start, {}, forward.h.view3(),
                      constant(forward.last.state(c.options)), c.grad_h.view3(), grad_last, out);
  }
  return g;
}

// Forward and backward in both float types against the float64 reference.
void expect_reference(const CellOptions& options, double f32 = 2e-5, double f32_gradients = 1e-4) {
  SCOPED_TRACE(options.to_string());
  CellCase<double> wide(options);
  CellCase<float> narrow(wide);
  const auto expected = run_reference(wide);
  Context ctx = Context::serial();
  const auto gradients = run_backward(wide, ctx, true);
  const auto check = [&](auto& c, double tolerance, double gradient_tolerance) {
    const auto out = run(c);
    expect_near(out.h, expected.h, tolerance, "h");
    expect_near(out.last.C, expected.last.C, tolerance, "C");
    expect_near(out.last.n, expected.last.n, tolerance, "n");
    expect_near(out.last.m, expected.last.m, tolerance, "m");
    const auto g = run_backward(c, ctx);
    expect_near(g.q, gradients.q, gradient_tolerance, "gradient of q");
    expect_near(g.k, gradients.k, gradient_tolerance, "gradient of k");
    expect_near(g.v, gradients.v, gradient_tolerance, "gradient of v");
    expect_near(g.i, gradients.i, gradient_tolerance, "gradient of i");
    expect_near(g.f, gradients.f, gradient_tolerance, "gradient of f");
    expect_near(g.memory.C, gradients.memory.C, gradient_tolerance, "gradient of C");
    expect_near(g.memory.n, gradients.memory.n, gradient_tolerance, "gradient of n");
    expect_near(g.memory.m, gradients.memory.m, gradient_tolerance, "gradient of m");
  };
  check(wide, 1e-12, 1e-10);
  check(narrow, f32, f32_gradients);
}

TEST(Mlstm, EqualsTheReferenceForAnyLength) {
  for (const std::int64_t T : {0, 1, 2, 3, 31, 32, 33, 64, 65, 130}) expect_reference({.lengths = {T}});
}

TEST(Mlstm, EqualsTheReferenceForAnyWidth) {
  for (const std::int64_t K : {1, 3, 16, 17, 40}) {
    for (const std::int64_t V : {1, 5, 16, 33}) expect_reference({.lengths = {9}, .K = K, .V = V});
  }
}

TEST(Mlstm, EqualsTheReferenceWithEveryGate) {
  for (const bool normalise : {true, false}) {
    expect_reference({.lengths = {40, 0, 3}, .input_gate = InputGate::Sigmoid, .normalise = normalise});
  }
  for (const double eps : {0.0, 1e-3, 0.1}) expect_reference({.lengths = {40}, .eps = eps});
}

// Both branches of the denominator: |n·q| above exp(−m), and below.
TEST(Mlstm, EqualsTheReferenceInBothBranchesOfTheDenominator) {
  for (const double shift : {-8.0, -2.0, 0.0, 2.0, 8.0}) {
    const CellOptions options{.lengths = {40}, .H = 3, .input_shift = shift, .state = false};
    expect_reference(options);
    CellCase<double> c(options);
    std::int64_t above = 0, below = 0;
    for (std::int64_t head = 0; head < options.H; ++head) {
      auto memory = reference::load_memory(c.memory.state(options), head, options.K, std::int64_t{16});
      for (std::int64_t t = 0; t < 40; ++t) {
        const auto x = reference::mlstm_token(c.inputs(), t, head, memory);
        memory = x.after;
        (x.reads_normaliser ? above : below) += 1;
      }
    }
    if (shift == -2) {
      EXPECT_TRUE(above > 0 && below > 0) << above << " and " << below;
    }
  }
}

TEST(Mlstm, StaysFiniteForGatesOfHundreds) {
  for (const double gates : {30.0, 100.0}) {
    for (const double shift : {-200.0, 0.0, 200.0}) {
      CellCase<float> c({.lengths = {40}, .gates = gates, .input_shift = shift, .state = false});
      Context ctx = Context::serial();
      const auto out = run(c);
      const auto g = run_backward(c, ctx);
      for (const Rows<float>* rows : {&out.h, &out.last.C, &out.last.n, &out.last.m, &g.q, &g.k, &g.v, &g.i, &g.f}) {
        for (std::int64_t i = 0; i < rows->size(); ++i) ASSERT_TRUE(std::isfinite((*rows)[i])) << gates << " " << shift;
      }
    }
  }
}

TEST(Mlstm, StartsWithoutAFloorFromMinusInfinity) {
  CellCase<double> c({.lengths = {20}, .state = false, .m0 = -kInfinity});
  const auto out = run(c);
  const auto expected = run_reference(c);
  expect_near(out.h, expected.h, 1e-12, "h");
  expect_near(out.last.m, expected.last.m, 1e-12, "m");
}

TEST(Mlstm, SplitsHaveTheSameBits) {
  constexpr std::int64_t kTokens = 96;
  CellCase<float> whole({.lengths = {kTokens}, .K = 20, .V = 21, .gates = 5});
  const auto expected = run(whole);
  for (const std::int64_t step : {1, 7, 32, 65}) {
    Memory<float> memory = whole.memory;
    for (std::int64_t first = 0; first < kTokens; first += step) {
      const std::int64_t last = std::min(first + step, kTokens);
      CellCase<float> part = whole.part(first, last);
      part.memory = memory;
      const auto out = run(part);
      expect_same_bits(out.h, expected.h.rows(first, last), "h before token " + std::to_string(last));
      memory = out.last;
    }
    expect_same_bits(memory.C, expected.last.C, "C");
    expect_same_bits(memory.n, expected.last.n, "n");
    expect_same_bits(memory.m, expected.last.m, "m");
  }
}

TEST(Mlstm, ThreadsAndInstructionSetsHaveTheSameBits) {
  const simd::Isa before = simd::current_isa();
  CellCase<float> c({.lengths = {40, 33}, .H = 3, .K = 17, .V = 50, .gates = 3});
  Context serial = Context::serial();
  const auto expected = run(c);
  const auto gradients = run_backward(c, serial);
  const auto check = [&](Context& ctx, const std::string& what) {
    const auto out = run(c, ctx);
    expect_same_bits(out.h, expected.h, what + ", h");
    expect_same_bits(out.last.C, expected.last.C, what + ", C");
    expect_same_bits(out.last.n, expected.last.n, what + ", n");
    const auto g = run_backward(c, ctx);
    expect_same_bits(g.q, gradients.q, what + ", gradient of q");
    expect_same_bits(g.i, gradients.i, what + ", gradient of i");
    expect_same_bits(g.f, gradients.f, what + ", gradient of f");
    expect_same_bits(g.memory.m, gradients.memory.m, what + ", gradient of m");
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

// The gradient of two segments with the state handed over is that of one run: the share of the last state included.
TEST(Mlstm, GradientsOfTwoSegmentsEqualThoseOfOne) {
  constexpr std::int64_t kTokens = 70, kCut = 30;
  CellCase<double> whole({.lengths = {kTokens}, .gates = 2});
  Context ctx = Context::serial();
  const auto expected = run_backward(whole, ctx);
  CellCase<double> first = whole.part(0, kCut), second = whole.part(kCut, kTokens);
  second.memory = run(first).last;
  const auto late = run_backward(second, ctx);
  first.grad_memory = late.memory;
  const auto early = run_backward(first, ctx);
  for (const auto member : {&CellGradients<double>::q, &CellGradients<double>::k, &CellGradients<double>::v,
                            &CellGradients<double>::i, &CellGradients<double>::f}) {
    expect_near(early.*member, (expected.*member).rows(0, kCut), 1e-11, "before the cut");
    expect_near(late.*member, (expected.*member).rows(kCut, kTokens), 1e-11, "after the cut");
  }
  expect_near(early.memory.C, expected.memory.C, 1e-11, "C");
  expect_near(early.memory.n, expected.memory.n, 1e-11, "n");
  expect_near(early.memory.m, expected.memory.m, 1e-11, "m");
}

// Moving every i by the same number changes nothing where the floor never rules and eps is 0: i's gradients cancel in
// their sum, and rounding may leave no more of it than the last place of the largest.
TEST(Mlstm, GradientsOfTheInputGateCancelInTheirSum) {
  constexpr std::int64_t kTokens = 2000;
  CellCase<float> c({.lengths = {kTokens}, .H = 8, .input_shift = 12, .eps = 0, .state = false, .m0 = -kInfinity});
  for (Rows<float>* rows : {&c.q, &c.k}) {
    for (std::int64_t i = 0; i < rows->size(); ++i)
      (*rows)[i] = std::abs((*rows)[i]);  // no query orthogonal to its keys
  }
  for (Rows<float>* rows : {&c.grad_memory.C, &c.grad_memory.n, &c.grad_memory.m}) {
    rows->fill([](std::int64_t) { return 0; });
  }
  Context ctx = Context::serial();
  const auto g = run_backward(c, ctx);
  double squares = 0;
  for (std::int64_t head = 0; head < c.options.H; ++head) {
    double sum = 0, largest = 0;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const double x = g.i[t * c.options.H + head];
      sum += x;
      largest = std::max(largest, std::abs(x));
    }
    squares += sum / largest * (sum / largest);
  }
  EXPECT_LE(std::sqrt(squares / static_cast<double>(c.options.H)), 7e-7);
}

}  // namespace
}  // namespace stepwell::ops
