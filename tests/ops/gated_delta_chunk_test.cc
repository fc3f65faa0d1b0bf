// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/ops/gated_delta.h"
#include "stepwell/simd/isa.h"

#include "ops/gated_delta/chunked.h"
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
using testing::kDecayMixes;
using testing::Rows;
using testing::run_delta;

constexpr std::array<std::int64_t, 7> kChunks = {1, 2, 5, 16, 32, 64, 128};

template <class T>
DeltaOutputs<T> run(DeltaCase<T>& c, std::int64_t chunk, Context& ctx) {
  return run_delta(c, [&](const auto& in, const auto& segments, auto state, auto o) {
    gated_delta_chunked<T>(ctx, in, segments, state, o, {.chunk = chunk});
  });
}
template <class T>
DeltaOutputs<T> run(DeltaCase<T>& c, std::int64_t chunk) {
  Context ctx = Context::serial();
  return run(c, chunk, ctx);
}
template <class T>
DeltaOutputs<T> run_reference(DeltaCase<T>& c) {
  return run_delta(c, [](const auto&... a) { reference::gated_delta<T>(a...); });
}

void expect_reference(const DeltaOptions& options, std::int64_t chunk) {
  SCOPED_TRACE(options.to_string() + " chunk " + std::to_string(chunk));
  DeltaCase<double> wide(options);
  DeltaCase<float> narrow(wide);
  const auto expected = run_reference(wide), actual = run(wide, chunk);
  expect_near(actual.o, expected.o, 1e-12, "o");
  expect_near(actual.state, expected.state, 1e-12, "state");
  const auto rough = run(narrow, chunk);
  expect_near(rough.o, expected.o, 2e-5, "o, float");
  expect_near(rough.state, expected.state, 2e-5, "state, float");
}

TEST(GatedDeltaChunk, EqualsTheReferenceForAnyLengthAndChunk) {
  for (const std::int64_t T : {0, 1, 5, 17, 64, 65, 130}) {
    for (const std::int64_t chunk : kChunks) expect_reference({.lengths = {T}, .K = 9, .V = 5}, chunk);
  }
}

TEST(GatedDeltaChunk, EqualsTheReferenceForAnyWidth) {
  for (const std::int64_t K : {1, 3, 8, 16, 17, 33, 64}) {
    for (const std::int64_t V : {1, 3, 8, 16, 17, 33, 64}) {
      expect_reference({.lengths = {37}, .K = K, .V = V}, 16);
      expect_reference({.lengths = {37}, .K = K, .V = V}, 32);
    }
  }
}

// Every member of the family, with and without grouped value heads, gates of key heads and of value heads.
std::vector<DeltaOptions> every_gate() {
  std::vector<DeltaOptions> all;
  constexpr GateOf kGates[] = {GateOf::None, GateOf::Head, GateOf::Channel, GateOf::ValueHead, GateOf::ValueChannel};
  for (const GateOf g : kGates) {
    for (const GateOf b : kGates) {
      for (const GateOf w : {GateOf::None, GateOf::ValueHead, GateOf::ValueChannel}) {
        all.push_back({.lengths = {67, 0, 5},
                       .H = 2,
                       .G = 1 + static_cast<std::int64_t>(all.size() % 3),
                       .K = 18,
                       .V = 7,
                       .g = g,
                       .b = b,
                       .w = w,
                       .mix = all.size() % 2 ? DecayMix::Resets : DecayMix::Wide,
                       .l2norm = all.size() % 5 == 0});
      }
    }
  }
  return all;
}
TEST(GatedDeltaChunk, EqualsTheReferenceForEveryGate) {
  for (const DeltaOptions& options : every_gate()) {
    for (const std::int64_t chunk : {7, 16, 64}) expect_reference(options, chunk);
  }
}

TEST(GatedDeltaChunk, MakesDecaysFromTheirGates) {
  for (const DecayGate gate : {DecayGate::Softplus, DecayGate::Bounded}) {
    for (const GateOf g : {GateOf::Head, GateOf::Channel, GateOf::ValueHead, GateOf::ValueChannel}) {
      for (const std::int64_t chunk : {5, 16, 64}) {
        expect_reference({.lengths = {70}, .H = 2, .G = 2, .K = 9, .V = 5, .g = g, .gate = gate}, chunk);
      }
    }
  }
}

TEST(GatedDeltaChunk, IsExactForEveryDecay) {
  for (const DecayMix mix : kDecayMixes) {
    for (const GateOf g : {GateOf::Head, GateOf::Channel}) {
      for (const std::int64_t chunk : kChunks) {
        for (const std::uint64_t seed : {1, 2}) {
          expect_reference({.lengths = {130}, .K = 16, .V = 8, .g = g, .mix = mix, .seed = seed}, chunk);
        }
      }
    }
  }
}

// max|Δ| / max|expected|
template <class T>
double relative_error(const Rows<T>& actual, const Rows<double>& expected) {
  double largest = 0, worst = 0;
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double error = std::abs(static_cast<double>(actual[i]) - expected[i]);
    worst = error <= worst ? worst : error;
  }
  return worst / largest;
}

// In single precision chunks lose no more than a small factor against the recurrence.
TEST(GatedDeltaChunk, StaysNearTheAccuracyOfTheRecurrentForm) {
  for (const DecayMix mix : kDecayMixes) {
    for (const std::int64_t chunk : {16, 64}) {
      std::vector<double> recurrent, chunked;
      for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        DeltaCase<double> wide({.lengths = {192}, .K = 64, .V = 32, .mix = mix, .seed = seed});
        DeltaCase<float> narrow(wide);
        const auto expected = run_reference(wide);
        Context ctx = Context::serial();
        GatedDeltaOptions<float> options;
        options.form = Form::Recurrent;
        const auto plain = run_delta(narrow, [&](const auto&... a) { gated_delta<float>(ctx, a..., options); });
        recurrent.push_back(relative_error(plain.o, expected.o));
        chunked.push_back(relative_error(run(narrow, chunk).o, expected.o));
      }
      std::sort(recurrent.begin(), recurrent.end());
      std::sort(chunked.begin(), chunked.end());
      EXPECT_LE(chunked[5], 3 * recurrent[5]) << "mix " << static_cast<int>(mix) << " chunk " << chunk;
    }
  }
}

// X2, and no product with what comes later: even a NaN ahead changes no bit.
TEST(GatedDeltaChunk, NeverLooksAhead) {
  for (const GateOf g : {GateOf::Head, GateOf::Channel}) {
    for (const std::int64_t chunk : {5, 16, 64}) {
      for (const std::int64_t cut : {1, 15, 16, 20, 63, 90}) {
        DeltaCase<float> c({.lengths = {100}, .K = 20, .V = 9, .g = g});
        const auto expected = run(c, chunk).o.rows(0, cut);
        for (auto* input : {&c.q, &c.k, &c.v, &c.g, &c.b, &c.w}) {
          for (std::int64_t i = cut * (input->size() / 100); i < input->size(); ++i) (*input)[i] = std::nanf("");
        }
        expect_same_bits(run(c, chunk).o.rows(0, cut), expected, "before token " + std::to_string(cut));
      }
    }
  }
}

template <class T>
void expect_same_outputs(const DeltaOutputs<T>& actual, const DeltaOutputs<T>& expected, const std::string& what) {
  expect_same_bits(actual.o, expected.o, "o, " + what);
  expect_same_bits(actual.state, expected.state, "state, " + what);
}

TEST(GatedDeltaChunk, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const GateOf g : {GateOf::Channel, GateOf::ValueHead}) {
    DeltaCase<float> c({.lengths = {130, 3, 0, 65}, .H = 3, .G = 2, .K = 20, .V = 33, .g = g});
    const auto expected = run(c, 32);
    for (const int threads : {2, 4}) {
      Context ctx = Context::parallel(threads);
      expect_same_outputs(run(c, 32, ctx), expected, std::to_string(threads) + " threads");
    }
  }
}

TEST(GatedDeltaChunk, GivesPackedSequencesTheBitsOfEachAlone) {
  DeltaCase<float> c({.lengths = {70, 0, 33, 64}, .H = 2, .G = 2, .K = 20, .V = 18});
  const auto together = run(c, 16);
  for (std::int64_t s = 0; s < c.sequences(); ++s) {
    DeltaCase<float> alone = c.rows(c.offsets[s], c.offsets[s + 1]);
    alone.state = c.state.rows(4 * s, 4 * s + 4);
    const auto out = run(alone, 16);
    expect_same_bits(together.o.rows(c.offsets[s], c.offsets[s + 1]), out.o, "o");
    expect_same_bits(together.state.rows(4 * s, 4 * s + 4), out.state, "state");
  }
}

// Parts that end where chunks end give the bits of the whole.
TEST(GatedDeltaChunk, ContinuesAtTheEndOfAChunk) {
  DeltaCase<float> whole({.lengths = {150}, .H = 2, .K = 20, .V = 18});
  const auto expected = run(whole, 16);
  for (const std::int64_t cut : {16, 64, 80, 144}) {
    DeltaCase<float> first = whole.rows(0, cut), second = whole.rows(cut, 150);
    const auto early = run(first, 16);
    second.state = early.state;
    const auto late = run(second, 16);
    expect_same_bits(early.o, expected.o.rows(0, cut), "before");
    expect_same_bits(late.o, expected.o.rows(cut, 150), "after");
    expect_same_bits(late.state, expected.state, "state");
  }
}

// X7.
TEST(GatedDeltaChunk, GivesTheSameBitsOnEveryInstructionSet) {
  const auto check = [](auto type, const DeltaOptions& options, std::int64_t chunk) {
    DeltaCase<decltype(type)> c(options);
    const simd::Isa best = simd::current_isa();
    const auto expected = run(c, chunk);
    for (const simd::Isa isa : simd::supported_isas()) {
      if (!simd::has_fma(isa)) continue;
      simd::set_isa(isa);
      expect_same_outputs(run(c, chunk), expected, std::string(simd::isa_name(isa)));
    }
    simd::set_isa(best);
  };
  for (const GateOf g : {GateOf::None, GateOf::Head, GateOf::Channel}) {
    for (const std::int64_t chunk : {5, 16, 64}) {
      const DeltaOptions options{.lengths = {67}, .K = 21, .V = 19, .g = g, .l2norm = true};
      check(float(), options, chunk);
      check(double(), options, chunk);
    }
  }
}

// A gate that is constant in time: a stride of 0 over tokens.
TEST(GatedDeltaChunk, ReadsGatesThatAreConstantInTime) {
  DeltaCase<float> c({.lengths = {70}, .H = 2, .K = 9, .V = 5, .g = GateOf::Head});
  for (std::int64_t i = 0; i < c.g.size(); ++i) c.g[i] = c.g[i % 2];
  const auto expected = run(c, 16);
  const auto constant = run_delta(c, [&](auto in, const auto& segments, auto state, auto o) {
    in.g.stride[0] = 0;
    Context ctx = Context::serial();
    gated_delta_chunked<float>(ctx, in, segments, state, o, {.chunk = 16});
  });
  expect_same_outputs(constant, expected, "constant");
}

TEST(GatedDeltaChunk, KeepsTheStateBeforeEverySpan) {
  DeltaCase<float> c({.lengths = {130, 0, 64, 3}, .H = 1, .G = 2, .K = 9, .V = 20});
  const std::int64_t size = 2 * 9 * 16, HV = 2;
  Rows<float> checkpoints(checkpoint_rows(c.segments(), HV), size);
  Context ctx = Context::serial();
  std::vector<float> norms(static_cast<std::size_t>(4 * HV), std::nanf(""));
  const auto out = run_delta(c, [&](const auto& in, const auto& segments, auto state, auto o) {
    gated_delta_chunked<float>(ctx, in, segments, state, o,
                               {.chunk = 16, .checkpoints = c.states(checkpoints), .largest_norm = norms.data()});
  });
  DeltaCase<float> start = c.rows(0, 64);
  start.state = c.state.rows(0, 2);
  const auto after = run(start, 16);
  for (std::int64_t j = 0; j < HV; ++j) {
    const auto row = [&](std::int64_t s, std::int64_t i) {
      const std::int64_t at = checkpoint_row(c.segments(), HV, s, i, j);
      return checkpoints.rows(at, at + 1);
    };
    expect_same_bits(row(0, 0), c.state.rows(j, j + 1), "before the first span");
    expect_same_bits(row(0, 1), after.state.rows(j, j + 1), "before the second");
    expect_same_bits(row(2, 0), c.state.rows(4 + j, 5 + j), "before the third sequence");
    double squares = 0;
    for (std::int64_t i = 0; i < size; ++i) squares += std::pow(out.state.rows(6 + j, 7 + j)[i], 2);
    EXPECT_NEAR(norms[6 + j], std::sqrt(squares), 1e-5 * std::sqrt(squares));
    EXPECT_EQ(norms[2 + j], 0) << "a sequence without tokens";
  }
}

}  // namespace
}  // namespace stepwell::ops
