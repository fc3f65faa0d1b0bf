// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/gated_delta.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/ops/verify_gated_delta.h"
#include "stepwell/simd/isa.h"

#include "ops/gated_delta/reference.h"
#include "tests/ops/delta_case.h"

namespace stepwell::ops {
namespace {

using testing::DecayMix;
using testing::DeltaCase;
using testing::DeltaOptions;
using testing::DeltaOutputs;
using testing::expect_near;
using testing::expect_same_bits;
using testing::GateOf;
using testing::Rows;
using testing::run_delta;

template <class T>
DeltaOutputs<T> run(DeltaCase<T>& c, Context& ctx, GatedDeltaOptions<T> options = {}) {
  options.form = Form::Recurrent;
  return run_delta(c, [&](const auto& in, const auto& segments, auto state, auto o) {
    gated_delta<T>(ctx, in, segments, state, o, options);
  });
}
template <class T>
DeltaOutputs<T> run(DeltaCase<T>& c) {
  Context ctx = Context::serial();
  return run(c, ctx);
}
template <class T>
DeltaOutputs<T> run_reference(DeltaCase<T>& c) {
  return run_delta(c, [](const auto&... a) { reference::gated_delta<T>(a...); });
}

template <class T>
void expect_same_bits(const DeltaOutputs<T>& actual, const DeltaOutputs<T>& expected, const std::string& what) {
  expect_same_bits(actual.o, expected.o, what + ", o");
  expect_same_bits(actual.state, expected.state, what + ", state");
}

// Both float types against the float64 reference.
void expect_reference(const DeltaOptions& options) {
  SCOPED_TRACE(options.to_string());
  DeltaCase<double> wide(options);
  DeltaCase<float> narrow(wide);
  const auto expected = run_reference(wide);
  const auto check = [&](auto& c, double tolerance) {
    const auto out = run(c);
    expect_near(out.o, expected.o, tolerance, "o");
    expect_near(out.state, expected.state, tolerance, "state");
  };
  check(wide, 1e-13);
  check(narrow, 5e-6);
}

constexpr GateOf kKeyGates[] = {GateOf::None, GateOf::Head, GateOf::Channel, GateOf::ValueHead, GateOf::ValueChannel};
constexpr GateOf kWriteGates[] = {GateOf::None, GateOf::ValueHead, GateOf::ValueChannel};

TEST(GatedDelta, EqualsTheReferenceForAnyLength) {
  for (const std::int64_t T : {0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 130}) {
    expect_reference({.lengths = {T}, .H = 2, .K = 5, .V = 7});
    expect_reference({.lengths = {T}, .K = 5, .V = 7, .b = GateOf::None});
  }
}

TEST(GatedDelta, EqualsTheReferenceForAnyWidth) {
  for (const std::int64_t K : {1, 2, 15, 16, 17, 33, 64}) {
    for (const std::int64_t V : {1, 3, 8, 15, 16, 17, 31, 33, 48, 64, 81, 130}) {
      expect_reference({.lengths = {9}, .K = K, .V = V});
    }
  }
  // Long keys take narrower strips.
  for (const std::int64_t K : {129, 257, 600}) {
    expect_reference({.lengths = {3}, .K = K, .V = 85});
    expect_reference({.lengths = {3}, .K = K, .V = 16, .g = GateOf::Head, .b = GateOf::None});
  }
}

TEST(GatedDelta, EqualsTheReferenceForEveryGateAndGroup) {
  for (const std::int64_t G : {1, 2, 3}) {
    for (const GateOf g : kKeyGates) {
      for (const GateOf b : kKeyGates) {
        for (const GateOf w : kWriteGates) {
          expect_reference({.lengths = {5, 0, 7}, .H = 2, .G = G, .K = 6, .V = 5, .g = g, .b = b, .w = w});
        }
      }
    }
  }
}

TEST(GatedDelta, EqualsTheReferenceWithGatesAndNormsInside) {
  for (const DecayGate gate : {DecayGate::Softplus, DecayGate::Bounded}) {
    for (const GateOf g : {GateOf::Head, GateOf::Channel, GateOf::ValueHead, GateOf::ValueChannel}) {
      expect_reference({.lengths = {40}, .H = 2, .G = 2, .K = 19, .V = 5, .g = g, .gate = gate, .l2norm = true});
    }
  }
}

TEST(GatedDelta, EqualsTheReferenceForEveryDecay) {
  for (const DecayMix mix : testing::kDecayMixes) {
    expect_reference({.lengths = {70}, .H = 2, .K = 16, .V = 16, .mix = mix});
  }
  expect_reference({.lengths = {70}, .H = 2, .K = 16, .V = 16, .mix = DecayMix::Zero});
}

// Steps of any lengths from carried states have the bits of one call (X1).
TEST(GatedDelta, SplitsHaveTheSameBits) {
  constexpr std::int64_t kTokens = 96;
  for (const DeltaOptions& options : {DeltaOptions{.lengths = {kTokens}, .H = 2, .K = 20, .V = 21},
                                      DeltaOptions{.lengths = {kTokens}, .K = 8, .V = 70, .b = GateOf::None},
                                      DeltaOptions{.lengths = {kTokens},
                                                   .K = 8,
                                                   .V = 70,
                                                   .g = GateOf::Head,
                                                   .b = GateOf::Head,
                                                   .gate = DecayGate::Softplus,
                                                   .l2norm = true}}) {
    DeltaCase<float> whole(options);
    const auto expected = run(whole);
    for (const std::vector<std::int64_t>& ends : {std::vector<std::int64_t>{17, 96},
                                                  std::vector<std::int64_t>{32, 96},
                                                  std::vector<std::int64_t>{1, 2, 64, 65, 96},
                                                  {}}) {
      std::vector<std::int64_t> cuts = ends;
      for (std::int64_t t = 1; cuts.empty() || cuts.back() < kTokens; ++t) cuts.push_back(t);
      Rows<float> state = whole.state;
      std::int64_t first = 0;
      for (const std::int64_t last : cuts) {
        DeltaCase<float> part = whole.rows(first, last);
        part.state = state;
        const auto out = run(part);
        expect_same_bits(out.o, expected.o.rows(first, last), "o before token " + std::to_string(last));
        state = out.state;
        first = last;
      }
      expect_same_bits(state, expected.state, "last state");
    }
  }
}

TEST(GatedDelta, PackedSequencesEqualSeparateOnes) {
  DeltaCase<float> packed({.lengths = {1, 65, 0, 16, 30}, .H = 2, .K = 16, .V = 24});
  const auto expected = run(packed);
  for (std::int64_t s = 0; s < packed.sequences(); ++s) {
    DeltaCase<float> one = packed.rows(packed.offsets[s], packed.offsets[s + 1]);
    one.state = packed.state.rows(s * 2, s * 2 + 2);
    const auto out = run(one);
    expect_same_bits(out.o, expected.o.rows(packed.offsets[s], packed.offsets[s + 1]), "o");
    expect_same_bits(out.state, expected.state.rows(s * 2, s * 2 + 2), "state");
  }
}

TEST(GatedDelta, ThreadsAndInstructionSetsHaveTheSameBits) {
  const simd::Isa before = simd::current_isa();
  for (const std::int64_t H : {1, 9}) {
    DeltaCase<float> c({.lengths = {40, 33}, .H = H, .K = H == 1 ? 17 : 131, .V = 150, .l2norm = true});
    const auto expected = run(c);
    for (const int threads : {2, 3}) {
      Context ctx = Context::parallel(threads);
      expect_same_bits(run(c, ctx), expected, std::to_string(threads) + " threads");
    }
    for (const simd::Isa isa : simd::supported_isas()) {
      if (!simd::has_fma(isa) && isa != simd::Isa::Scalar) continue;
      simd::set_isa(isa);
      expect_same_bits(run(c), expected, std::string(simd::isa_name(isa)));
    }
    simd::set_isa(before);
  }
}

TEST(GatedDelta, MultipliesOutputsByFactors) {
  DeltaCase<float> c({.lengths = {40, 0, 33}, .H = 2, .G = 2, .K = 6, .V = 37, .b = GateOf::None});
  Rows<float> factors(c.tokens(), 4, 1);
  factors.fill([](std::int64_t i) { return 0.25f * static_cast<float>(i % 7) - 1; });
  Context ctx = Context::serial();
  for (const Form form : {Form::Recurrent, Form::Chunked}) {
    const auto outputs = [&](const GatedDeltaOptions<float>& options) {
      return run_delta(c, [&](const auto& in, const auto& segments, auto state, auto o) {
        gated_delta<float>(ctx, in, segments, state, o, options);
      });
    };
    auto expected = outputs({.form = form});
    for (std::int64_t t = 0; t < c.tokens(); ++t) {
      for (std::int64_t j = 0; j < 4; ++j) {
        for (std::int64_t column = 0; column < 37; ++column) {
          expected.o.view3()(t, j, column) *= factors.view3()(t, j, 0);
        }
      }
    }
    expect_same_bits(outputs({.form = form, .o_factors = factors.view3()}), expected, "with factors");
  }
}

TEST(GatedDelta, LeavesCheckpointsForTheBackwardPass) {
  constexpr std::int64_t kHeads = 2;
  DeltaCase<float> c({.lengths = {130, 0, 64}, .H = kHeads, .K = 6, .V = 20});
  const std::int64_t rows = checkpoint_rows(c.segments(), kHeads), size = state_units(20) * 6 * kStateUnit;
  Rows<float> kept(rows, size, 1);
  GatedDeltaOptions<float> options;
  options.checkpoints = c.states(kept);
  Context ctx = Context::serial();
  const auto with = run(c, ctx, options);
  expect_same_bits(with, run(c), "with checkpoints");
  for (std::int64_t s = 0; s < c.sequences(); ++s) {
    for (std::int64_t i = 0; i * kCheckpointTokens < c.segments().length(s); ++i) {
      DeltaCase<float> start = c.rows(c.offsets[s], c.offsets[s] + i * kCheckpointTokens);
      start.state = c.state.rows(s * kHeads, (s + 1) * kHeads);
      const auto out = run(start);
      for (std::int64_t head = 0; head < kHeads; ++head) {
        const std::int64_t row = checkpoint_row(c.segments(), kHeads, s, i, head);
        expect_same_bits(kept.rows(row, row + 1), out.state.rows(head, head + 1), "checkpoint");
      }
    }
  }
}

// gated-delta rules are no contraction: with these keys and gates in range the state grows by 5/4 every two tokens.
TEST(GatedDelta, GrowsByFiveQuartersInThePatternThatDoes) {
  constexpr std::int64_t kTokens = 200;
  const double a = std::sqrt(5.0 / 6), b = std::sqrt(1.0 / 6);
  DeltaCase<double> c({.lengths = {kTokens}, .K = 2, .V = 1, .g = GateOf::None});
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const bool odd = t % 2 != 0;
    c.k.view3()(t, 0, 0) = odd ? a : b;
    c.k.view3()(t, 0, 1) = odd ? b : a;
    c.b.view3()(t, 0, 0) = odd ? 0 : 1;
    c.b.view3()(t, 0, 1) = odd ? 1 : 0;
    c.w.view3()(t, 0, 0) = 0;
  }
  double norm = 0;
  GatedDeltaOptions<double> options;
  options.largest_norm = &norm;
  Context ctx = Context::serial();
  // The growing direction first, then the steady rate.
  DeltaOutputs<double> out = run(c, ctx, options);
  const double first = norm;
  c.state = out.state;
  out = run(c, ctx, options);
  EXPECT_NEAR(std::log(norm / first) / std::log(1.25), kTokens / 2, 1e-6);
}

TEST(GatedDelta, WatchesTheLargestNorm) {
  DeltaCase<float> c({.lengths = {130, 3}, .H = 2, .K = 6, .V = 20});
  std::vector<float> norms(4, std::numeric_limits<float>::quiet_NaN());
  GatedDeltaOptions<float> options;
  options.largest_norm = norms.data();
  Context ctx = Context::serial();
  const auto out = run(c, ctx, options);
  expect_same_bits(out, run(c), "watched");
  for (std::int64_t s = 0; s < 2; ++s) {
    for (std::int64_t head = 0; head < 2; ++head) {
      double largest = 0;
      for (const std::int64_t end : {64, 128, 130}) {
        if (end > c.segments().length(s) && end != 64) continue;
        DeltaCase<float> part =
            c.rows(c.offsets[s], c.offsets[s] + std::min<std::int64_t>(end, c.segments().length(s)));
        part.state = c.state.rows(s * 2, s * 2 + 2);
        Rows<float> state = run(part).state;
        double squares = 0;
        for (std::int64_t i = 0; i < state.view2().extent[1]; ++i) {
          squares += static_cast<double>(state.view2()(head, i)) * state.view2()(head, i);
        }
        largest = std::max(largest, std::sqrt(squares));
      }
      EXPECT_NEAR(norms[static_cast<std::size_t>(s * 2 + head)], largest, 1e-5 * largest);
    }
  }
}

TEST(GatedDelta, AutoIsRecurrentWhereBitsCount) {
  DeltaCase<float> c({.lengths = {70}, .H = 1, .G = 8, .K = 16, .V = 16, .g = GateOf::ValueHead, .b = GateOf::None});
  const auto forward = [&](Mode mode, Form form) {
    Context ctx = Context::serial(mode);
    return run_delta(c, [&](const auto& in, const auto& segments, auto state, auto o) {
      gated_delta<float>(ctx, in, segments, state, o, {.form = form, .checkpoints = {}});
    });
  };
  expect_same_bits(forward(Mode::Exact, Form::Auto), forward(Mode::Fast, Form::Recurrent), "exact");
  expect_same_bits(forward(Mode::Fast, Form::Auto), forward(Mode::Exact, Form::Chunked), "fast");
}

TEST(GatedDelta, AFutureTokenChangesNothingBefore) {
  DeltaCase<float> c({.lengths = {70}, .K = 8, .V = 16});
  const auto expected = run(c);
  for (const std::int64_t at : {1, 31, 32, 64}) {
    for (const float value : {1e3f, std::numeric_limits<float>::quiet_NaN()}) {
      DeltaCase<float> changed = c;
      changed.v.view3()(at, 0, 0) = value;
      changed.k.view3()(at, 0, 0) = value;
      changed.g.view3()(at, 0, 0) = -std::numeric_limits<float>::infinity();
      expect_same_bits(run(changed).o.rows(0, at), expected.o.rows(0, at), "o before token " + std::to_string(at));
    }
  }
}

TEST(GatedDelta, VerifiesItselfOnTheCallersTensors) {
  DeltaCase<float> c({.lengths = {65, 3}, .H = 2, .G = 2, .K = 8, .V = 20, .mix = DecayMix::Resets});
  Context ctx = Context::serial();
  const auto differences = verify_gated_delta<float>(ctx, c.inputs(), c.segments(), c.states(c.state), 16);
  ASSERT_EQ(differences.size(), 4u);
  for (const FormDifference& d : differences) {
    EXPECT_GT(d.largest, 0) << d.form;  // float is not double
    EXPECT_LE(d.relative(), 5e-6) << d.form << " " << d.output;
  }
  // A value that float cannot hold is found, and named.
  c.v.view3()(40, 3, 17) = 3e38f;
  c.k.view3()(40, 1, 5) = 100;
  c.w.view3()(40, 3, 17) = 1;
  bool found = false;
  for (const FormDifference& d : verify_gated_delta<float>(ctx, c.inputs(), c.segments(), c.states(c.state), 16)) {
    if (d.output == "final_state") continue;
    EXPECT_TRUE(std::isinf(d.largest)) << d.form;
    found = found || (d.worst[0] >= 40 && d.worst[1] == 3 && d.worst[2] == 17);
  }
  EXPECT_TRUE(found);
}

TEST(GatedDelta, PacksStatesOfEitherOrientation) {
  constexpr std::int64_t kRows = 3, K = 5, V = 21;
  std::vector<float> state(kRows * K * V), packed(kRows * state_units(V) * K * kStateUnit, -1), back(state.size());
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = static_cast<float>(i + 1);
  const View<float, 3> key_first{back.data(), {kRows, K, V}, {K * V, V, 1}};
  const View<const float, 3> value_first{state.data(), {kRows, K, V}, {K * V, 1, K}};  // stored [n, V, K]
  const auto units = View<float, 4>::contiguous(packed.data(), {kRows, state_units(V), K, kStateUnit});
  Context ctx = Context::serial();
  pack_state<float>(ctx, value_first, units);
  unpack_state<float>(ctx, units, key_first);
  for (std::int64_t n = 0; n < kRows; ++n) {
    for (std::int64_t d = 0; d < K; ++d) {
      for (std::int64_t c = 0; c < V; ++c) EXPECT_EQ(key_first(n, d, c), value_first(n, d, c));
      for (std::int64_t c = V; c < state_units(V) * kStateUnit; ++c) {
        EXPECT_EQ(units(n, c / kStateUnit, d, c % kStateUnit), 0);
      }
    }
  }
}

}  // namespace
}  // namespace stepwell::ops
