// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/ops/gated_delta.h"
#include "stepwell/simd/isa.h"

#include "ops/gated_delta/reference.h"
#include "tests/ops/delta_case.h"

namespace stepwell::ops {
namespace {

using testing::DecayMix;
using testing::DeltaCase;
using testing::DeltaGradients;
using testing::DeltaOptions;
using testing::expect_near;
using testing::expect_same_bits;
using testing::GateOf;
using testing::kDecayMixes;
using testing::Rows;
using testing::run_delta;
using testing::run_delta_backward;

template <class T>
DeltaGradients<T> run(DeltaCase<T>& c, Context& ctx) {
  return run_delta_backward(
      c, [&](const auto& in, const auto& segments, auto state, auto grad_o, auto grad_state, const auto& out) {
        gated_delta_backward<T>(ctx, in, segments, state, {}, grad_o, grad_state, out);
      });
}
template <class T>
DeltaGradients<T> run(DeltaCase<T>& c) {
  Context ctx = Context::serial();
  return run(c, ctx);
}

// Both float types against the float64 reference adjoint.
void expect_reference(const DeltaOptions& options) {
  SCOPED_TRACE(options.to_string());
  DeltaCase<double> wide(options);
  DeltaCase<float> narrow(wide);
  const auto expected =
      run_delta_backward(wide, [](const auto&... a) { reference::gated_delta_backward<double>(a...); });
  const auto check = [&](const auto& gradients, double tolerance) {
    const auto actual = gradients.all();
    for (std::size_t i = 0; i < actual.size(); ++i) {
      expect_near(*actual[i].second, *expected.all()[i].second, tolerance, actual[i].first);
    }
  };
  check(run(wide), 1e-12);
  check(run(narrow), 2e-5);
}

TEST(GatedDeltaBackward, EqualsTheReferenceForAnyLength) {
  for (const std::int64_t T : {0, 1, 2, 5, 15, 16, 17, 63, 64, 65, 129, 130, 200}) {
    expect_reference({.lengths = {T}, .K = 9, .V = 5});
  }
}

TEST(GatedDeltaBackward, EqualsTheReferenceForAnyWidth) {
  for (const std::int64_t K : {1, 3, 8, 16, 17, 33, 64}) {
    for (const std::int64_t V : {1, 3, 8, 16, 17, 33, 64}) expect_reference({.lengths = {37}, .K = K, .V = V});
  }
}

TEST(GatedDeltaBackward, EqualsTheReferenceForEveryGate) {
  constexpr GateOf kGates[] = {GateOf::None, GateOf::Head, GateOf::Channel, GateOf::ValueHead, GateOf::ValueChannel};
  std::int64_t count = 0;
  for (const GateOf g : kGates) {
    for (const GateOf b : kGates) {
      for (const GateOf w : {GateOf::None, GateOf::ValueHead, GateOf::ValueChannel}) {
        for (const std::int64_t G : {1, 2, 3}) {
          expect_reference({.lengths = {67, 0, 5},
                            .H = 2,
                            .G = G,
                            .K = 18,
                            .V = 7,
                            .g = g,
                            .b = b,
                            .w = w,
                            .mix = count % 2 ? DecayMix::Resets : DecayMix::Wide,
                            .l2norm = count % 5 == 0});
          ++count;
        }
      }
    }
  }
}

TEST(GatedDeltaBackward, PassesThroughTheDecayGates) {
  for (const DecayGate gate : {DecayGate::Softplus, DecayGate::Bounded}) {
    for (const GateOf g : {GateOf::Head, GateOf::Channel, GateOf::ValueHead, GateOf::ValueChannel}) {
      for (const std::int64_t G : {1, 2}) {
        expect_reference({.lengths = {70, 3}, .H = 2, .G = G, .K = 9, .V = 5, .g = g, .gate = gate});
      }
    }
  }
}

TEST(GatedDeltaBackward, IsExactForEveryDecay) {
  for (const DecayMix mix : kDecayMixes) {
    for (const GateOf g : {GateOf::Head, GateOf::Channel}) {
      for (const GateOf b : {GateOf::None, GateOf::Channel}) {
        for (const std::uint64_t seed : {1, 2}) {
          expect_reference({.lengths = {130}, .K = 16, .V = 8, .g = g, .b = b, .mix = mix, .seed = seed});
        }
      }
    }
  }
  expect_reference({.lengths = {70}, .K = 16, .V = 8, .mix = DecayMix::Zero});
}

TEST(GatedDeltaBackward, EqualsTheReferenceForManySequences) {
  DeltaOptions options{.lengths = {}, .H = 2, .G = 2, .K = 5, .V = 3, .gate = DecayGate::Softplus};
  for (std::int64_t s = 0; s < 30; ++s) options.lengths.push_back(s * 37 % 90);
  expect_reference(options);
  expect_reference({.lengths = {}, .K = 3, .V = 2});
}

// Σ o·grad_o + Σ state·grad_state, of the recurrent form.
double loss(DeltaCase<double>& c) {
  Context ctx = Context::serial();
  auto out = run_delta(c, [&](const auto&... a) { gated_delta<double>(ctx, a...); });
  double sum = 0;
  for (std::int64_t i = 0; i < out.o.size(); ++i) sum += out.o[i] * c.grad_o[i];
  for (std::int64_t i = 0; i < out.state.size(); ++i) sum += out.state[i] * c.grad_state[i];
  return sum;
}
void expect_finite_differences(const DeltaOptions& options) {
  SCOPED_TRACE(options.to_string());
  DeltaCase<double> c(options);
  auto g = run(c);
  const auto check = [&](const char* name, Rows<double>& input, const Rows<double>& gradient) {
    testing::expect_finite_differences(name, input, gradient, [&] { return loss(c); });
  };
  check("q", c.q, g.q);
  check("k", c.k, g.k);
  check("v", c.v, g.v);
  check("g", c.g, g.g);
  check("b", c.b, g.b);
  check("w", c.w, g.w);
  check("A_log", c.A_log, g.A_log);
  check("dt_bias", c.dt_bias, g.dt_bias);
  check("state", c.state, g.state);
}
TEST(GatedDeltaBackward, AgreesWithFiniteDifferencesForEveryInput) {
  expect_finite_differences({.lengths = {5, 0, 3}, .H = 1, .G = 2, .K = 3, .V = 2, .l2norm = true});
  expect_finite_differences({.lengths = {6}, .K = 3, .V = 2, .gate = DecayGate::Softplus});
  expect_finite_differences(
      {.lengths = {6}, .K = 3, .V = 2, .g = GateOf::Head, .b = GateOf::Head, .gate = DecayGate::Bounded});
}

TEST(GatedDeltaBackward, SkipsGradientsThatNobodyWants) {
  DeltaCase<float> c({.lengths = {70}, .H = 2, .G = 2, .K = 9, .V = 20, .gate = DecayGate::Softplus});
  const auto all = run(c);
  const auto run_some = [&](auto choose) {
    return run_delta_backward(
        c, [&](const auto& in, const auto& segments, auto state, auto grad_o, auto grad_state, const auto& out) {
          GatedDeltaGradients<float> wanted;
          choose(wanted, out);
          Context ctx = Context::serial();
          gated_delta_backward<float>(ctx, in, segments, state, {}, grad_o, grad_state, wanted);
        });
  };
  const auto first = run_some([](auto& wanted, const auto& out) {
    wanted.k = out.k;
    wanted.w = out.w;
    wanted.dt_bias = out.dt_bias;
  });
  expect_same_bits(first.k, all.k, "k");
  expect_same_bits(first.w, all.w, "w");
  expect_same_bits(first.dt_bias, all.dt_bias, "dt_bias");
  const auto second = run_some([](auto& wanted, const auto& out) {
    wanted.q = out.q;
    wanted.v = out.v;
    wanted.g = out.g;
    wanted.b = out.b;
    wanted.state = out.state;
  });
  expect_same_bits(second.q, all.q, "q");
  expect_same_bits(second.v, all.v, "v");
  expect_same_bits(second.g, all.g, "g");
  expect_same_bits(second.b, all.b, "b");
  expect_same_bits(second.state, all.state, "state");
}

template <class T>
void expect_same_gradients(const DeltaGradients<T>& actual, const DeltaGradients<T>& expected,
                           const std::string& what) {
  const auto a = actual.all(), e = expected.all();
  for (std::size_t i = 0; i < a.size(); ++i) expect_same_bits(*a[i].second, *e[i].second, a[i].first + ", " + what);
}

// What is not there counts as zero.
TEST(GatedDeltaBackward, TakesAbsentStatesAndGradientsForZero) {
  DeltaCase<float> c({.lengths = {70, 5}, .K = 9, .V = 20});
  for (auto* zeros : {&c.state, &c.grad_state}) zeros->fill([](std::int64_t) { return 0; });
  const auto expected = run(c);
  const auto absent =
      run_delta_backward(c, [](const auto& in, const auto& segments, auto, auto grad_o, auto, const auto& out) {
        Context ctx = Context::serial();
        gated_delta_backward<float>(ctx, in, segments, {}, {}, grad_o, {}, out);
      });
  expect_same_gradients(absent, expected, "no states");
  DeltaCase<float> silent({.lengths = {70, 5}, .K = 9, .V = 20});
  silent.grad_o.fill([](std::int64_t) { return 0; });
  const auto of_state = run(silent);
  const auto without = run_delta_backward(
      silent, [](const auto& in, const auto& segments, auto state, auto, auto grad_state, const auto& out) {
        Context ctx = Context::serial();
        gated_delta_backward<float>(ctx, in, segments, state, {}, {}, grad_state, out);
      });
  expect_same_gradients(without, of_state, "no gradient of the outputs");
}

// Checkpoints of the forward pass, or made again.
TEST(GatedDeltaBackward, StartsFromCheckpoints) {
  DeltaCase<float> c({.lengths = {130, 0, 64, 3}, .H = 1, .G = 2, .K = 9, .V = 20});
  const auto expected = run(c);
  Rows<float> checkpoints(checkpoint_rows(c.segments(), 2), 2 * 9 * 16);
  Context ctx = Context::serial();
  run_delta(c, [&](const auto&... a) {
    GatedDeltaOptions<float> options;
    options.checkpoints = c.states(checkpoints);
    gated_delta<float>(ctx, a..., options);
  });
  const auto given = run_delta_backward(
      c, [&](const auto& in, const auto& segments, auto, auto grad_o, auto grad_state, const auto& out) {
        gated_delta_backward<float>(ctx, in, segments, {}, c.states(checkpoints), grad_o, grad_state, out);
      });
  expect_same_gradients(given, expected, "given");
}

// X3.
TEST(GatedDeltaBackward, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const GateOf g : {GateOf::Channel, GateOf::ValueHead}) {
    for (const GateOf b : {GateOf::Channel, GateOf::ValueChannel}) {
      DeltaCase<float> c({.lengths = {130, 3, 0, 65, 9},
                          .H = 3,
                          .G = 2,
                          .K = 20,
                          .V = 33,
                          .g = g,
                          .b = b,
                          .gate = DecayGate::Softplus});
      const auto expected = run(c);
      for (const int threads : {1, 2, 4}) {
        Context ctx = Context::parallel(threads);
        expect_same_gradients(run(c, ctx), expected, std::to_string(threads) + " threads");
      }
    }
  }
}

// X7.
template <class T>
void expect_same_bits_on_every_instruction_set(const DeltaOptions& options) {
  DeltaCase<T> c(options);
  const simd::Isa best = simd::current_isa();
  const auto expected = run(c);
  for (const simd::Isa isa : simd::supported_isas()) {
    if (!simd::has_fma(isa)) continue;
    simd::set_isa(isa);
    expect_same_gradients(run(c), expected, std::string(simd::isa_name(isa)) + " " + options.to_string());
  }
  simd::set_isa(best);
}
TEST(GatedDeltaBackward, GivesTheSameBitsOnEveryInstructionSet) {
  for (const GateOf g : {GateOf::Head, GateOf::Channel}) {
    for (const GateOf b : {GateOf::None, GateOf::Head, GateOf::Channel}) {
      for (const DecayGate gate : {DecayGate::Given, DecayGate::Softplus, DecayGate::Bounded}) {
        const DeltaOptions options{
            .lengths = {67}, .G = 2, .K = 21, .V = 19, .g = g, .b = b, .gate = gate, .l2norm = true};
        expect_same_bits_on_every_instruction_set<float>(options);
        expect_same_bits_on_every_instruction_set<double>(options);
      }
    }
  }
}

TEST(GatedDeltaBackward, KeepsANanToItsSequence) {
  const DeltaOptions options{.lengths = {40, 40}, .K = 9, .V = 20};
  DeltaCase<float> clean(options), spoilt(options);
  spoilt.v[5 * 20 + 3] = std::nanf("");
  const auto expected = run(clean), out = run(spoilt);
  expect_same_bits(out.q.rows(40, 80), expected.q.rows(40, 80), "q");
  expect_same_bits(out.g.rows(40, 80), expected.g.rows(40, 80), "g");
  // Within the sequence, the other columns stay clean.
  for (std::int64_t t = 0; t < 40; ++t) EXPECT_EQ(out.v[t * 20 + 4], expected.v[t * 20 + 4]);
}

// The gradient of a decay is accurate relative to itself, not to terms that cancel: where every decay is exp(−20), the
// gradients are of that size.
TEST(GatedDeltaBackward, LosesNothingOfTheGradientOfStrongDecays) {
  for (const GateOf g : {GateOf::Head, GateOf::Channel}) {
    DeltaCase<double> wide({.lengths = {70}, .K = 16, .V = 8, .g = g, .mix = DecayMix::Strong, .seed = 2});
    DeltaCase<float> narrow(wide);
    const auto expected =
        run_delta_backward(wide, [](const auto&... a) { reference::gated_delta_backward<double>(a...); });
    expect_near(run(narrow).g, expected.g, 2e-6, "g");
    EXPECT_LT(std::abs(expected.g[0]), 1e-6);
  }
}

TEST(GatedDeltaBackward, PassesNoGradientThroughAnEndlessDecay) {
  for (const GateOf g : {GateOf::Head, GateOf::Channel}) {
    for (const DecayGate gate : {DecayGate::Softplus, DecayGate::Bounded}) {
      DeltaCase<float> c({.lengths = {20}, .K = 7, .V = 4, .g = g, .gate = gate});
      c.A_log.fill([](std::int64_t) { return 100; });
      c.g.fill([](std::int64_t i) { return i % 2 ? 1e30 : -1e30; });
      const auto gradients = run(c);
      for (const auto& [name, rows] : gradients.all()) {
        for (std::int64_t i = 0; i < rows->size(); ++i) ASSERT_TRUE(std::isfinite((*rows)[i])) << name;
      }
    }
  }
}

}  // namespace
}  // namespace stepwell::ops
