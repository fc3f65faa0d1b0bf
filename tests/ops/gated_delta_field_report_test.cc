// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// Faults that users of other implementations have met, as far as they concern the gated delta rule.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/ops/gated_delta.h"

#include "ops/gated_delta/reference.h"
#include "tests/ops/delta_case.h"

namespace stepwell::ops {
namespace {

using testing::DecayMix;
using testing::DeltaCase;
using testing::DeltaGradients;
using testing::DeltaOptions;
using testing::DeltaOutputs;
using testing::expect_near;
using testing::GateOf;
using testing::Rows;
using testing::run_delta;
using testing::run_delta_backward;

constexpr double kE32 = 2e-5;

// A form of the op: recurrent, or chunks of so many tokens.
struct Way {
  Form form;
  std::int64_t chunk;
  std::string name() const { return form == Form::Recurrent ? "recurrent" : "chunk " + std::to_string(chunk); }
};
const std::vector<Way> kWays = {
    {Form::Recurrent, 0}, {Form::Chunked, 16}, {Form::Chunked, 32}, {Form::Chunked, 64}, {Form::Chunked, 128}};

template <class T>
DeltaOutputs<T> forward(DeltaCase<T>& c, const Way& way) {
  Context ctx = Context::serial();
  GatedDeltaOptions<T> options;
  options.form = way.form;
  options.chunk = way.chunk;
  return run_delta(c, [&](const auto& in, const auto& segments, auto state, auto o) {
    gated_delta<T>(ctx, in, segments, state, o, options);
  });
}
template <class T>
DeltaGradients<T> backward(DeltaCase<T>& c) {
  Context ctx = Context::serial();
  return run_delta_backward(
      c, [&](const auto& in, const auto& segments, auto state, auto grad_o, auto grad_state, const auto& out) {
        gated_delta_backward<T>(ctx, in, segments, state, {}, grad_o, grad_state, out);
      });
}
DeltaOutputs<double> oracle(DeltaCase<double>& c) {
  return run_delta(c, [](const auto&... a) { reference::gated_delta<double>(a...); });
}

// The float forms, and if asked the float gradients, against the plain recurrence in double on the same numbers.
void expect_oracle(DeltaCase<double>& wide, const std::string& what, bool gradients = true, double tolerance = kE32) {
  DeltaCase<float> narrow(wide);
  const auto expected = oracle(wide);
  for (const Way& way : kWays) {
    const auto out = forward(narrow, way);
    expect_near(out.o, expected.o, tolerance, what + ", " + way.name() + ", o");
    expect_near(out.state, expected.state, tolerance, what + ", " + way.name() + ", state");
  }
  if (!gradients) return;
  const auto expected_gradients =
      run_delta_backward(wide, [](const auto&... a) { reference::gated_delta_backward<double>(a...); });
  const auto g = backward(narrow);
  for (std::size_t i = 0; i < g.all().size(); ++i) {
    expect_near(*g.all()[i].second, *expected_gradients.all()[i].second, tolerance,
                what + ", gradient of " + g.all()[i].first);
  }
}

// The gates of the family's members.
struct Member {
  const char* name;
  GateOf g, b, w;
};
const std::vector<Member> kMembers = {{"GDN-2", GateOf::Channel, GateOf::Channel, GateOf::ValueChannel},
                                      {"KDA", GateOf::ValueChannel, GateOf::ValueHead, GateOf::ValueHead},
                                      {"GDN", GateOf::ValueHead, GateOf::ValueHead, GateOf::ValueHead},
                                      {"GLA", GateOf::Channel, GateOf::None, GateOf::None},
                                      {"Mamba-2", GateOf::ValueHead, GateOf::None, GateOf::ValueHead}};

// Decays far below what a product of exponentials of running sums can hold.
TEST(FieldReport, P1_TinyDecays) {
  for (const Member& m : kMembers) {
    for (const std::int64_t time : {64, 130}) {
      for (const int mix : {0, 1, 2}) {
        DeltaCase<double> c({.lengths = {time}, .H = 2, .K = 16, .V = 16, .g = m.g, .b = m.b, .w = m.w});
        std::mt19937_64 engine(3);
        std::uniform_real_distribution<double> uniform(0, 1);
        c.g.fill([&](std::int64_t i) {
          const double decay = mix == 0 ? 1e-12 : mix == 1 ? std::pow(1e-30, uniform(engine)) : i % 16 ? 0.99 : 1e-38;
          return static_cast<float>(std::log(decay));
        });
        expect_oracle(c, std::string(m.name) + ", T " + std::to_string(time) + ", decays " + std::to_string(mix));
      }
    }
  }
}

// A gate of 1 is no gate, however long, and next to others.
TEST(FieldReport, P5_AGateOfOneIsNoGate) {
  double first_error = 0;
  for (const std::int64_t time : {7, 50, 64, 65, 512, 4096}) {
    const DeltaOptions ungated{.lengths = {time},
                               .H = 2,
                               .K = 64,
                               .V = 64,
                               .g = GateOf::None,
                               .b = GateOf::Head,
                               .w = GateOf::ValueHead,
                               .l2norm = true};
    DeltaCase<double> plain(ungated);
    const auto expected = oracle(plain);
    for (const GateOf g : {GateOf::Head, GateOf::Channel}) {
      DeltaCase<float> c(plain);
      c.g = Rows<float>(time, 2, g == GateOf::Head ? 1 : 64);
      c.g.fill([](std::int64_t) { return 0; });
      for (const Way& way : kWays) {
        const std::string what = "T " + std::to_string(time) + ", " + way.name();
        const auto out = forward(c, way);
        expect_near(out.o, expected.o, kE32, what + ", o");
        expect_near(out.state, expected.state, kE32, what + ", state");
        double error = 0;
        for (std::int64_t i = 0; i < out.o.size(); ++i) error = std::max(error, std::abs(out.o[i] - expected.o[i]));
        if (time == 64) first_error = std::max(first_error, error);
        if (time == 4096) {
          EXPECT_LE(error, 4 * first_error) << what;
        }
      }
    }
  }
  for (const Member& m : kMembers) {
    DeltaCase<double> c({.lengths = {65}, .H = 2, .K = 16, .V = 16, .g = m.g, .b = m.b, .w = m.w});
    std::mt19937_64 engine(4);
    std::vector<bool> open(65);
    for (std::size_t t = 0; t < open.size(); ++t) open[t] = engine() % 2;
    const std::int64_t row = c.g.size() / 65;
    for (std::int64_t i = 0; i < c.g.size(); ++i) {
      if (open[static_cast<std::size_t>(i / row)]) c.g[i] = 0;
    }
    expect_oracle(c, std::string(m.name) + ", half of the gates 1");
  }
}

// Keys of length 1 keep the solve of a chunk tame, whatever they are; longer ones let the recurrence itself grow.
TEST(FieldReport, P6_KeysOfAnyLength) {
  const DeltaOptions delta{.lengths = {128},
                           .H = 1,
                           .K = 16,
                           .V = 16,
                           .g = GateOf::None,
                           .b = GateOf::Head,
                           .w = GateOf::ValueHead,
                           .l2norm = true};
  for (const double beta : {1.0, 2.0}) {
    for (const std::int64_t alike : {1, 2, 64}) {  // so many identical keys in a row
      DeltaCase<double> c(delta);
      c.b.fill([&](std::int64_t) { return beta; });
      c.w.fill([&](std::int64_t) { return beta; });
      for (std::int64_t i = 0; i < c.k.size(); ++i) c.k[i] = c.k[i / 16 / alike * alike * 16 + i % 16];
      expect_oracle(c, "beta " + std::to_string(beta) + ", " + std::to_string(alike) + " alike", false);
    }
  }
  DeltaCase<double> long_keys({.lengths = {16},
                               .H = 1,
                               .K = 16,
                               .V = 16,
                               .g = GateOf::None,
                               .b = GateOf::Head,
                               .w = GateOf::ValueHead,
                               .unit_keys = false});
  long_keys.b.fill([](std::int64_t) { return 0.5; });
  expect_oracle(long_keys, "keys of length 4", false, 1e-3);

  // Eigenvalues down to −1, 4,096 tokens: bounded.
  DeltaCase<double> reflections({.lengths = {4096},
                                 .H = 1,
                                 .K = 16,
                                 .V = 16,
                                 .g = GateOf::None,
                                 .b = GateOf::Head,
                                 .w = GateOf::ValueHead,
                                 .l2norm = true});
  for (std::int64_t i = 0; i < reflections.b.size(); ++i) reflections.w[i] = reflections.b[i] *= 2;
  expect_oracle(reflections, "gates up to 2", false);
}

// A state that outgrows float is never a finite wrong number, in no form.
TEST(FieldReport, P6_OverflowShows) {
  DeltaCase<double> wide({.lengths = {128},
                          .H = 1,
                          .K = 64,
                          .V = 16,
                          .g = GateOf::None,
                          .b = GateOf::Head,
                          .w = GateOf::ValueHead,
                          .unit_keys = false});
  wide.b.fill([](std::int64_t) { return 0.5; });
  const auto expected = oracle(wide);
  DeltaCase<float> c(wide);
  std::int64_t overflow = 0;
  while (overflow < 128 && std::abs(expected.o[overflow * 16]) < 1e38) ++overflow;
  ASSERT_GT(overflow, 32);
  ASSERT_LT(overflow, 120) << "the state outgrows float";
  for (const Way& way : kWays) {
    const auto out = forward(c, way);
    for (std::int64_t t = 0; t < 128; ++t) {
      bool finite = false;
      for (std::int64_t v = 0; v < 16; ++v) finite = finite || std::isfinite(out.o[t * 16 + v]);
      if (t < 16 || t > overflow + 4) {
        EXPECT_EQ(finite, t < 16) << way.name() << ", token " << t;
      }
    }
    for (std::int64_t i = 0; i < out.state.size(); ++i) EXPECT_FALSE(std::isfinite(out.state[i])) << way.name();
  }
}

// A slow decay is not rounded away: states are float whatever the weights are.
TEST(FieldReport, P10_SlowDecayIsKept) {
  for (const auto& [decay, tokens] : {std::pair{0.999, 1000}, {0.9998, 2000}}) {
    DeltaCase<float> c({.lengths = {tokens}, .K = 4, .V = 4, .g = GateOf::Head, .b = GateOf::Head});
    const float g = static_cast<float>(std::log(decay));
    c.g.fill([&](std::int64_t) { return g; });
    for (auto* zero : {&c.k, &c.v}) zero->fill([](std::int64_t) { return 0; });
    c.state.fill([](std::int64_t) { return 1; });
    const double expected = std::exp(static_cast<double>(g) * tokens);
    for (const Way& way : kWays) {
      const auto out = forward(c, way);
      EXPECT_NEAR(out.state[0], expected, 1e-4 * expected) << way.name();
    }
  }
}

// What the first token writes is there 511 tokens later, eight chunks on, in every form.
TEST(FieldReport, P12_InformationCrossesChunks) {
  for (const GateOf b : {GateOf::None, GateOf::Channel}) {
    DeltaCase<float> c({.lengths = {512}, .K = 8, .V = 4, .g = GateOf::Head, .b = b, .w = GateOf::None});
    const float g = static_cast<float>(std::log(0.999));
    c.g.fill([&](std::int64_t) { return g; });
    c.q.fill([](std::int64_t) { return 1; });
    c.k.fill([](std::int64_t i) { return i < 8 ? 1 : 0; });
    c.v.fill([](std::int64_t i) { return i < 4 ? 1 : 0; });
    c.state.fill([](std::int64_t) { return 0; });
    for (const Way& way : kWays) {
      const auto out = forward(c, way);
      const double expected = out.o[0] * std::exp(511.0 * static_cast<double>(g));
      EXPECT_NEAR(out.o[511 * 4], expected, 1e-5 * expected) << way.name();
    }
  }
}

// Lengths that no chunk divides, with a gate and a bias inside, from a state: outputs, last state, every gradient. What
// lies behind every row is NaN.
TEST(FieldReport, P14_RaggedLengths) {
  for (const std::int64_t time : {1, 2, 15, 16, 17, 63, 64, 65, 127, 129, 255, 257, 300, 1000}) {
    for (const Member& m : kMembers) {
      DeltaCase<double> c({.lengths = {time},
                           .H = 3,
                           .G = 2,
                           .K = 6,
                           .V = 5,
                           .g = m.g,
                           .b = m.b,
                           .w = m.w,
                           .gate = DecayGate::Softplus,
                           .l2norm = true});
      c.dt_bias.fill([](std::int64_t) { return 0.7f; });
      expect_oracle(c, std::string(m.name) + ", T " + std::to_string(time));
    }
  }
}

// Outputs of the rule in double with these gates.
DeltaOutputs<double> with_gates(const DeltaCase<double>& c, Rows<double> g, Rows<double> b, Rows<double> w,
                                const Way& way) {
  DeltaCase<double> other = c;
  other.g = std::move(g);
  other.b = std::move(b);
  other.w = std::move(w);
  return forward(other, way);
}
// One number per head as one per channel.
Rows<double> spread(const Rows<double>& gate, std::int64_t tokens, std::int64_t heads, std::int64_t channels) {
  Rows<double> wide(tokens, heads, channels);
  wide.fill([&](std::int64_t i) { return gate[i / channels]; });
  return wide;
}
Rows<double> constant(double value, std::int64_t tokens, std::int64_t heads) {
  Rows<double> gate(tokens, heads, 1);
  gate.fill([&](std::int64_t) { return value; });
  return gate;
}

// Equal gates make the general rule KDA, equal decays Gated DeltaNet, no decay DeltaNet, no erasing GLA; decay comes
// before erasing.
TEST(FieldReport, P16_ReductionLadder) {
  constexpr std::int64_t kTokens = 70, kHeads = 2, kKeys = 8, kValues = 5;
  DeltaCase<double> c({.lengths = {kTokens},
                       .H = kHeads,
                       .K = kKeys,
                       .V = kValues,
                       .g = GateOf::Head,
                       .b = GateOf::Head,
                       .w = GateOf::ValueHead,
                       .mix = DecayMix::Mild});
  const Rows<double> beta = c.b, wide_beta = spread(beta, kTokens, kHeads, kKeys),
                     wide_w = spread(beta, kTokens, kHeads, kValues), wide_g = spread(c.g, kTokens, kHeads, kKeys),
                     zero = spread(constant(0, kTokens, kHeads), kTokens, kHeads, kKeys),
                     one = constant(1, kTokens, kHeads);
  struct Rung {
    const char* name;
    Rows<double> g, b, w, general_g, general_b, general_w;
  };
  const std::vector<Rung> rungs = {{"KDA", wide_g, beta, beta, wide_g, wide_beta, wide_w},
                                   {"Gated DeltaNet", c.g, beta, beta, wide_g, wide_beta, wide_w},
                                   {"DeltaNet", {}, beta, beta, zero, wide_beta, wide_w},
                                   {"GLA", wide_g, {}, {}, wide_g, zero, spread(one, kTokens, kHeads, kValues)},
                                   {"Mamba-2", c.g, {}, beta, wide_g, zero, wide_w}};
  for (const Rung& rung : rungs) {
    for (const Way& way : kWays) {
      const auto special = with_gates(c, rung.g, rung.b, rung.w, way);
      const auto general = with_gates(c, rung.general_g, rung.general_b, rung.general_w, way);
      expect_near(special.o, general.o, 1e-11, std::string(rung.name) + ", " + way.name() + ", o");
      expect_near(special.state, general.state, 1e-11, std::string(rung.name) + ", " + way.name() + ", state");
    }
  }

  DeltaCase<double> one_number(
      {.lengths = {1}, .K = 1, .V = 1, .g = GateOf::Head, .b = GateOf::Head, .w = GateOf::None});
  one_number.g[0] = std::log(0.5);
  one_number.b[0] = one_number.k[0] = one_number.q[0] = 1;
  one_number.v[0] = 0;
  one_number.state.fill([](std::int64_t) { return 1; });
  for (const Way& way : kWays) {
    const auto out = forward(one_number, way);
    EXPECT_EQ(out.state[0], 0) << way.name();
    EXPECT_EQ(out.o[0], 0) << "read after the update; " << way.name();
  }
}

// Value head j reads key head ⌊j·H/HV⌋: as if the key heads were there several times, next to each other.
TEST(FieldReport, P17_GroupedHeads) {
  for (const auto& [H, G] : {std::pair{2, 2}, {3, 3}, {1, 3}, {16, 2}}) {
    constexpr std::int64_t kTokens = 20, kKeys = 4;
    DeltaCase<double> c({.lengths = {kTokens}, .H = H, .G = G, .K = kKeys, .V = 3});
    DeltaCase<double> spelled = c;
    const std::int64_t heads = H, count = G;
    for (auto member : {&DeltaCase<double>::q, &DeltaCase<double>::k, &DeltaCase<double>::g, &DeltaCase<double>::b}) {
      const Rows<double>& from = c.*member;
      Rows<double> each(kTokens, heads * count, kKeys);
      each.fill([&](std::int64_t i) {
        const std::int64_t t = i / kKeys / (heads * count), j = i / kKeys % (heads * count);
        return from[(t * heads + j / count) * kKeys + i % kKeys];
      });
      spelled.*member = each;
    }
    for (const Way& way : kWays) {
      expect_near(forward(c, way).o, forward(spelled, way).o, 1e-12, std::to_string(H) + ", " + way.name());
    }
    const auto g = backward(c), each = backward(spelled);
    for (auto member : {&DeltaGradients<double>::q, &DeltaGradients<double>::k, &DeltaGradients<double>::g,
                        &DeltaGradients<double>::b}) {
      Rows<double> sums(kTokens, heads, kKeys);
      sums.fill([&](std::int64_t i) {
        double sum = 0;
        for (std::int64_t j = 0; j < count; ++j) {
          sum += (each.*member)[(i / kKeys * count + j) * kKeys + i % kKeys];
        }
        return sum;
      });
      expect_near(g.*member, sums, 1e-12, "gradients are sums over the group");
    }
  }
}

// Packed sequences, empty ones among them, in every form: each as if alone, and an empty one hands its state on.
TEST(FieldReport, P25_EmptySequences) {
  DeltaCase<double> c({.lengths = {0, 3, 0, 65, 0}, .H = 2, .K = 5, .V = 6});
  expect_oracle(c, "packed");
  const auto g = backward(c);
  const std::int64_t row = c.state.size() / 5;
  for (const Way& way : kWays) {
    const auto out = forward(c, way);
    for (const std::int64_t s : {0, 2, 4}) {
      for (std::int64_t i = s * row; i < (s + 1) * row; ++i) {
        ASSERT_EQ(out.state[i], c.state[i]) << way.name();
        ASSERT_EQ(g.state[i], c.grad_state[i]);
      }
    }
  }
  DeltaCase<double> nothing({.lengths = {}, .H = 2, .K = 5, .V = 6});
  EXPECT_EQ(forward(nothing, kWays[0]).o.size(), 0);
}

// Twenty runs, any number of threads, gradients included: the same bits.
TEST(FieldReport, P41_RunsDoNotDifferFromRunToRun) {
  DeltaCase<float> c({.lengths = {130, 7}, .H = 2, .G = 2, .K = 20, .V = 37});
  for (const Way& way : {kWays[0], kWays[1], kWays[3]}) {
    std::vector<Rows<float>> first;
    for (int run = 0; run < 20; ++run) {
      Context ctx = Context::parallel(1 + run % 8);
      GatedDeltaOptions<float> options;
      options.form = way.form;
      options.chunk = way.chunk;
      const auto out = run_delta(c, [&](const auto& in, const auto& segments, auto state, auto o) {
        gated_delta<float>(ctx, in, segments, state, o, options);
      });
      const auto g = run_delta_backward(
          c, [&](const auto& in, const auto& segments, auto state, auto grad_o, auto grad_state, const auto& grads) {
            gated_delta_backward<float>(ctx, in, segments, state, {}, grad_o, grad_state, grads);
          });
      std::vector<Rows<float>> all = {out.o, out.state};
      for (const auto& [name, rows] : g.all()) {
        if (*rows) all.push_back(*rows);
      }
      if (first.empty()) first = all;
      for (std::size_t i = 0; i < all.size(); ++i) {
        testing::expect_same_bits(all[i], first[i], way.name() + ", tensor " + std::to_string(i));
      }
    }
  }
}

}  // namespace
}  // namespace stepwell::ops
