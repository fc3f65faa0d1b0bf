// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/adam.h"

#include <cmath>
#include <deque>
#include <limits>

#include <gtest/gtest.h>

#include "stepwell/models/model.h"
#include "stepwell/simd/isa.h"

namespace stepwell::train {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Parameters of odd sizes, with values that depend on (tensor, element) only.
struct Fixture {
  std::deque<layers::Parameter> owned;
  std::vector<layers::Parameter*> parameters;

  explicit Fixture(DType dtype = DType::F32) {
    add("layers.0.mixer.in_proj.weight", {37, 11}, true, dtype);
    add("layers.0.mixer.A_log", {7, 3}, false, dtype);
    add("layers.0.mixer.D", {7}, false, dtype);
    add("layers.0.mixer.dt_bias", {1}, false, dtype);
    add("layers.0.norm.weight", {0}, false, dtype);
    add("head.weight", {211, 193}, true, dtype);  // more than one parallel block
  }
  void add(const char* name, const Shape& shape, bool decay, DType dtype) {
    layers::Parameter& p = owned.emplace_back();
    p.name = name;
    p.decay = decay;
    p.value = Variable::leaf(numbers(shape, dtype, static_cast<int>(owned.size())));
    parameters.push_back(&p);
  }
  static Tensor numbers(const Shape& shape, DType dtype, int which, double size = 1) {
    Tensor t = Tensor::zeros(shape, DType::F64);
    double* x = t.data<double>();
    for (std::int64_t i = 0; i < t.numel(); ++i) {
      x[i] = size * (static_cast<double>((i * 7919 + which * 104729) % 2003) / 1001.0 - 1.0);
    }
    return t.to(dtype);
  }
  std::vector<Tensor> gradients(int step, double size = 1) const {
    std::vector<Tensor> g;
    for (std::size_t i = 0; i < owned.size(); ++i) {
      const Variable& value = owned[i].value;
      g.push_back(numbers(value.shape(), value.dtype(), 31 * step + static_cast<int>(i), size));
    }
    return g;
  }
  std::vector<Tensor> snapshot() const {
    std::vector<Tensor> copies;
    for (const auto& p : owned) copies.push_back(p.value.value().clone());
    return copies;
  }
};

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = a[i].same_bits(b[i]);
  return same;
}

bool same_bits(const layers::NamedTensors& a, const layers::NamedTensors& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i)
    same = a[i].first == b[i].first && a[i].second.same_bits(b[i].second);
  return same;
}

layers::NamedTensors copy_of(const layers::NamedTensors& tensors) {
  layers::NamedTensors copies;
  for (const auto& [name, tensor] : tensors) copies.emplace_back(name, tensor.clone());
  return copies;
}

// The textbook formula on one element, in double.
struct PlainAdam {
  double m = 0, v = 0;
  void step(double& p, double g, int t, double lr, double decay) {
    p *= 1 - lr * decay;
    m = 0.9 * m + (1 - 0.9) * g;
    v = 0.999 * v + (1 - 0.999) * g * g;
    p -= lr * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
  }
};

void expect_plain_formula(DType dtype, double tolerance) {
  Context ctx = Context::serial();
  Fixture f(dtype);
  std::vector<std::vector<PlainAdam>> plain;
  std::vector<std::vector<double>> values;
  for (const auto& p : f.owned) {
    plain.emplace_back(static_cast<std::size_t>(p.value.value().numel()));
    auto& column = values.emplace_back();
    for (std::int64_t i = 0; i < p.value.value().numel(); ++i) column.push_back(p.value.value().at(i));
  }
  Adam adam(f.parameters, {.weight_decay = 0.1});
  for (int step = 1; step <= 20; ++step) {
    const double lr = 1e-2 / step;
    const auto gradients = f.gradients(step);
    const AdamReport report = adam.step(ctx, gradients, lr);
    EXPECT_FALSE(report.skipped || report.clipped);
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (std::size_t k = 0; k < values[i].size(); ++k) {
        plain[i][k].step(values[i][k], gradients[i].at(static_cast<std::int64_t>(k)), step, lr,
                         f.owned[i].decay ? 0.1 : 0.0);
      }
    }
  }
  EXPECT_EQ(adam.steps(), 20);
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t k = 0; k < values[i].size(); ++k) {
      ASSERT_NEAR(f.owned[i].value.value().at(static_cast<std::int64_t>(k)), values[i][k], tolerance)
          << f.owned[i].name << " element " << k;
    }
  }
}

// 20 steps of at most 1e-2 each, rounded a few times per step at |p| ≤ 1.2.
TEST(Adam, FollowsTheFormulaInF64) { expect_plain_formula(DType::F64, 20 * 4 * 0x1p-53 * 1.2); }
TEST(Adam, FollowsTheFormulaInF32) { expect_plain_formula(DType::F32, 20 * 4 * 0x1p-24 * 1.2); }

TEST(Adam, GivesTheSameBitsOnEveryInstructionSetAndThreadCount) {
  const auto best = simd::current_isa();
  std::vector<Tensor> expected;
  for (const auto isa : simd::supported_isas()) {
    simd::set_isa(isa);
    for (const int threads : {1, 2, 3}) {
      Context ctx = Context::parallel(threads);
      Fixture f;
      Adam adam(f.parameters, {.weight_decay = 0.1, .clip_norm = 1});
      for (int step = 1; step <= 5; ++step) adam.step(ctx, f.gradients(step), 1e-2);
      if (expected.empty()) expected = f.snapshot();
      EXPECT_TRUE(same_bits(f.snapshot(), expected)) << simd::isa_name(isa) << " " << threads << " threads";
    }
  }
  simd::set_isa(best);
}

TEST(FieldReport, P37_NoWeightDecayOnMarkedParameters) {
  Context ctx = Context::serial();
  Fixture f;
  const auto before = f.snapshot();
  Adam adam(f.parameters, {.weight_decay = 0.1});
  std::vector<Tensor> zeros;
  for (const auto& p : f.owned) zeros.push_back(Tensor::zeros(p.value.shape()));
  for (int step = 0; step < 100; ++step) adam.step(ctx, zeros, 1e-2);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Tensor& after = f.owned[i].value.value();
    if (!f.owned[i].decay) {
      EXPECT_TRUE(after.same_bits(before[i])) << f.owned[i].name;
      continue;
    }
    for (std::int64_t k = 0; k < after.numel(); ++k) {
      // (1 − 1e-3)^100 = 0.9048, and 100 roundings.
      ASSERT_NEAR(after.at(k), before[i].at(k) * std::pow(1 - 1e-3, 100), 100 * 0x1p-24) << f.owned[i].name;
    }
  }
}

TEST(FieldReport, P37_NoWeightDecayOnTheSpecialParametersOfAMambaModel) {
  Context ctx = Context::serial();
  Config config;
  config.set("type", "causal_lm");
  config.set("width", 8);
  const auto model = models::make_model(config, Rng(1));
  const auto before = copy_of(model->named_parameters());
  Adam adam(model->parameters(), {.weight_decay = 0.1});
  std::vector<Tensor> zeros;
  for (const auto& [name, tensor] : before) zeros.push_back(Tensor::zeros(tensor.shape()));
  for (int step = 0; step < 100; ++step) adam.step(ctx, zeros, 1e-2);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto& [name, old] = before[i];
    const Tensor now = model->named_parameters()[i].second;
    const bool special = name.ends_with("A_log") || name.ends_with(".D") || name.ends_with("bias") ||
                         name.ends_with("norm.weight") || name.ends_with("norm_f.weight");
    EXPECT_EQ(now.same_bits(old), special) << name;
    kept += special;
    if (!special) {
      EXPECT_NEAR(now.at(0), 0.9048 * old.at(0), 1e-4 * std::fabs(old.at(0))) << name;
    }
  }
  EXPECT_EQ(kept, 2u * 5 + 1);  // A_log, D, dt_proj.bias, conv1d.bias, norm.weight of two layers; norm_f.weight
}

TEST(Adam, SkipsANonFiniteGradientKeepingEveryBit) {
  Context ctx = Context::parallel(2);
  for (const double poison : {kNaN, kInfinity, -kInfinity}) {
    Fixture f;
    Adam adam(f.parameters, {.clip_norm = 1});
    adam.step(ctx, f.gradients(1), 1e-2);
    const auto parameters = f.snapshot();
    const auto state = copy_of(adam.state());
    auto gradients = f.gradients(2);
    gradients.back().data<float>()[40000] = static_cast<float>(poison);
    const AdamReport report = adam.step(ctx, gradients, 1e-2);
    EXPECT_TRUE(report.skipped);
    EXPECT_EQ(adam.skipped(), 1);
    EXPECT_EQ(adam.steps(), 1);
    EXPECT_TRUE(same_bits(f.snapshot(), parameters));
    const auto after = adam.state();
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (state[i].first != "adam.skipped") {
        EXPECT_TRUE(after[i].second.same_bits(state[i].second)) << state[i].first;
      }
    }
  }
}

TEST(Adam, ClipsTheGlobalNorm) {
  Context ctx = Context::serial();
  Fixture clipped, scaled;
  const auto gradients = clipped.gradients(1, 3.0);
  double squares = 0;
  for (const auto& g : gradients) {
    for (std::int64_t k = 0; k < g.numel(); ++k) squares += g.at(k) * g.at(k);
  }
  Adam with(clipped.parameters, {.clip_norm = 0.5}), without(scaled.parameters, {});
  const AdamReport report = with.step(ctx, gradients, 1e-2);
  EXPECT_TRUE(report.clipped);
  EXPECT_NEAR(report.gradient_norm, std::sqrt(squares), 1e-9 * std::sqrt(squares));

  // The moments are those of the gradient scaled to norm ½.
  std::vector<Tensor> by_hand;
  const auto factor = static_cast<float>(0.5 / report.gradient_norm);
  for (const auto& g : gradients) {
    Tensor copy = g.clone();
    for (float& x : copy.span<float>()) x *= factor;
    by_hand.push_back(copy);
  }
  without.step(ctx, by_hand, 1e-2);
  EXPECT_TRUE(same_bits(clipped.snapshot(), scaled.snapshot()));
}

TEST(Adam, LeavesAParameterWithoutGradientAlone) {
  Context ctx = Context::serial();
  Fixture f;
  const auto before = f.snapshot();
  Adam adam(f.parameters, {.weight_decay = 0.1});
  auto gradients = f.gradients(1);
  gradients[0] = Tensor();
  adam.step(ctx, gradients, 1e-2);
  EXPECT_TRUE(f.owned[0].value.value().same_bits(before[0]));
  EXPECT_FALSE(f.owned[1].value.value().same_bits(before[1]));
}

TEST(Adam, ContinuesFromItsStateWithTheSameBits) {
  Context ctx = Context::serial();
  Fixture straight, resumed;
  Adam whole(straight.parameters, {.weight_decay = 0.01, .clip_norm = 1}),
      first(resumed.parameters, {.weight_decay = 0.01, .clip_norm = 1});
  for (int step = 1; step <= 9; ++step) whole.step(ctx, straight.gradients(step), 1e-2);
  for (int step = 1; step <= 4; ++step) first.step(ctx, resumed.gradients(step), 1e-2);
  const auto saved = copy_of(first.state());
  Adam second(resumed.parameters, {.weight_decay = 0.01, .clip_norm = 1});
  second.set_state(saved);
  for (int step = 5; step <= 9; ++step) second.step(ctx, resumed.gradients(step), 1e-2);
  EXPECT_TRUE(same_bits(straight.snapshot(), resumed.snapshot()));
  EXPECT_TRUE(same_bits(whole.state(), second.state()));
}

TEST(Adam, RefusesAWrongStateAsAWhole) {
  Context ctx = Context::serial();
  Fixture f;
  Adam adam(f.parameters, {});
  adam.step(ctx, f.gradients(1), 1e-2);
  const auto before = copy_of(adam.state());
  auto wrong = copy_of(adam.state());
  wrong[0].second.data<std::int64_t>()[0] = 77;
  wrong[3].first = "adam.m.other";
  wrong[6].second = Tensor::zeros({2, 2});
  try {
    adam.set_state(wrong);
    FAIL() << "accepted";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("adam.m.layers.0.mixer.in_proj.weight is missing"), std::string::npos) << text;
    EXPECT_NE(text.find("unknown tensor adam.m.other"), std::string::npos) << text;
    EXPECT_NE(text.find("adam.v.layers.0.mixer.A_log is F32 [2, 2], expected F32 [7, 3]"), std::string::npos) << text;
  }
  EXPECT_TRUE(same_bits(adam.state(), before));
}

TEST(Adam, RefusesNonsense) {
  Fixture f;
  Context ctx = Context::serial();
  EXPECT_THROW(Adam(f.parameters, {.beta1 = 1}), Error);
  EXPECT_THROW(Adam(f.parameters, {.beta2 = -0.1}), Error);
  EXPECT_THROW(Adam(f.parameters, {.eps = 0}), Error);
  EXPECT_THROW(Adam(f.parameters, {.weight_decay = kNaN}), Error);
  EXPECT_THROW(Adam(f.parameters, {.clip_norm = kInfinity}), Error);
  Adam adam(f.parameters, {});
  EXPECT_THROW(adam.step(ctx, std::span<const Tensor>(), 1e-2), Error);
  EXPECT_THROW(adam.step(ctx, f.gradients(1), kNaN), Error);
  auto gradients = f.gradients(1);
  gradients[1] = Tensor::zeros({3, 7});
  EXPECT_THROW(adam.step(ctx, gradients, 1e-2), Error);
}

}  // namespace
}  // namespace stepwell::train
