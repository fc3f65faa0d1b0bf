// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/mamba.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/layers/mixer_case.h"
#include "tests/layers/parameters_of.h"

namespace stepwell {
namespace {

using layers::Mamba;
using layers::MambaConfig;
using layers::MambaInit;
using layers::MambaStepInit;

Config options(std::string_view json) { return io::parse_json(json, "options"); }

TEST(MambaConfig, ResolvesWhatIsLeftOut) {
  MambaConfig c = MambaConfig::read(40, {});
  EXPECT_EQ(c.d_inner, 80);
  EXPECT_EQ(c.dt_rank, 3);
  c = MambaConfig::read(16, options(R"({"expand": 16, "d_inner": 24, "dt_rank": "auto", "d_model": 16})"));
  EXPECT_EQ(c.d_inner, 24) << "an explicit width wins";
  EXPECT_EQ(c.dt_rank, 1);
  EXPECT_EQ(MambaConfig::read(16, c.options()).options(), c.options());
}

TEST(MambaConfig, RefusesWhatIsWrongNamingIt) {
  const auto message = [](std::string_view json) {
    return message_of([&] { Mamba(MambaConfig::read(16, options(json)), Rng(1)); });
  };
  for (const auto& [json, word] : std::vector<std::pair<const char*, const char*>>{
           {R"({"d_state": 0})", "d_state"},
           {R"({"d_conv": -1})", "d_conv"},
           {R"({"dt_rank": "half"})", "dt_rank"},
           {R"({"d_model": 17})", "d_model"},
           {R"({"init": "random"})", "init"},
           {R"({"dt_min": 0.5})", "dt_max"},
           {R"({"d_statte": 4})", "did you mean d_state"},
           {R"({"conv_bias": 1})", "conv_bias"},
       }) {
    EXPECT_NE(message(json).find(word), std::string::npos) << json << ": " << message(json);
  }
  EXPECT_THROW(Mamba(MambaConfig{}, Rng(1)), Error) << "a width of 0";
  EXPECT_THROW(Mamba(MambaConfig{.d_model = 8, .d_state = 0}, Rng(1)), Error);
}

TEST(Mamba, HasThePublishedNamesShapesAndDecay) {
  Mamba mamba(MambaConfig{.d_model = 8, .d_state = 4, .d_conv = 3, .dt_rank = 2, .bias = true}, Rng(1));
  expect_parameters(mamba, {{"in_proj.weight", {32, 8}, true},
                            {"in_proj.bias", {32}, false},
                            {"conv1d.weight", {16, 1, 3}, true},
                            {"conv1d.bias", {16}, false},
                            {"x_proj.weight", {10, 16}, true},
                            {"dt_proj.weight", {16, 2}, true},
                            {"dt_proj.bias", {16}, false},
                            {"A_log", {16, 4}, false},
                            {"D", {16}, false},
                            {"out_proj.weight", {8, 16}, true},
                            {"out_proj.bias", {8}, false}});
  EXPECT_EQ(Mamba(MambaConfig{.d_model = 8, .conv_bias = false}, Rng(1)).parameters().size(), 8u);
}

// On the active block every parameter moves the output.
TEST(Mamba, EveryParameterMatters) {
  NoGrad constant;
  Context ctx = Context::serial();
  const Tensor x = random_input({1, 12, 8}, "x", DType::F32);
  Mamba mamba(MambaConfig{.d_model = 8, .d_state = 4, .bias = true, .init = MambaInit::Active}, Rng(3));
  const Tensor y = mamba.forward(ctx, x).y.value();
  for (const float v : y.span<float>()) ASSERT_TRUE(std::isfinite(v));
  for (layers::Parameter* parameter : mamba.parameters()) {
    const Tensor old = parameter->value.value(), moved = old.clone();
    for (float& v : moved.span<float>()) v += 0.05f;
    parameter->set(moved);
    EXPECT_FALSE(mamba.forward(ctx, x).y.value().same_bits(y)) << parameter->name;
    parameter->set(old);
  }
  EXPECT_TRUE(mamba.forward(ctx, x).y.value().same_bits(y));
}

TEST(MambaInit, EveryTensorHasItsOwnStream) {
  const auto a = parameters_of(Mamba(MambaConfig{.d_model = 16}, Rng(5)));
  const auto wider = parameters_of(Mamba(MambaConfig{.d_model = 16, .bias = true}, Rng(5)));
  for (const auto& [name, tensor] : a) EXPECT_TRUE(wider.at(name).same_bits(tensor)) << name;
  const auto other = parameters_of(Mamba(MambaConfig{.d_model = 16}, Rng(6)));
  EXPECT_FALSE(other.at("in_proj.weight").same_bits(a.at("in_proj.weight")));
}

TEST(MambaInit, StableStepsAreOneHundredth) {
  const auto p = parameters_of(Mamba(MambaConfig{.d_model = 16, .init = MambaInit::Stable}, Rng(5)));
  for (std::int64_t i = 0; i < 32; ++i) EXPECT_NEAR(p.at("dt_proj.bias").at(i), -4.600166, 1e-6);
  EXPECT_TRUE(p.at("conv1d.bias").same_bits(Tensor::zeros({32})));
  double square = 0;
  const Tensor& w = p.at("in_proj.weight");
  for (std::int64_t i = 0; i < w.numel(); ++i) square += w.at(i) * w.at(i);
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(w.numel())), 0.25, 0.02);
  const auto active = parameters_of(Mamba(MambaConfig{.d_model = 16, .init = MambaInit::Active}, Rng(5)));
  EXPECT_TRUE(active.at("dt_proj.bias").same_bits(Tensor::zeros({32})));
  EXPECT_TRUE(active.at("in_proj.weight").same_bits(w));
}

// ------------------------------------------------------------------------------------------------- Field reports

// 4,096 first step sizes: log-uniform in [0.001, 0.1], distinct, the same for the same number.
TEST(FieldReport, P37_FirstStepSizesAreLogUniform) {
  const MambaConfig config{.d_model = 16, .d_inner = 4096, .dt_rank = 128};
  const auto p = parameters_of(Mamba(config, Rng(9)));
  const Tensor& bias = p.at("dt_proj.bias");
  expect_log_uniform_steps(bias);
  EXPECT_TRUE(parameters_of(Mamba(config, Rng(9))).at("dt_proj.bias").same_bits(bias));

  const Tensor& A_log = p.at("A_log");
  for (std::int64_t i = 0; i < A_log.numel(); ++i) {
    ASSERT_FLOAT_EQ(static_cast<float>(A_log.at(i)), std::log(static_cast<float>(i % 16 + 1)));
  }
  const Tensor& weight = p.at("dt_proj.weight");
  const double bound = 1 / std::sqrt(128.0);
  double largest = 0;
  for (std::int64_t i = 0; i < weight.numel(); ++i) largest = std::max(largest, std::abs(weight.at(i)));
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.99 * bound);
  const auto constant =
      parameters_of(Mamba(MambaConfig{.d_model = 16, .dt_rank = 4, .dt_init = MambaStepInit::Constant}, Rng(9)));
  EXPECT_EQ(constant.at("dt_proj.weight").at(5), 0.5);
}

// A layer of one channel whose step is softplus(bias) exactly: x reaches dt only through dt_proj, which is 0.
std::unique_ptr<Mamba> one_channel(double dt_bias, double A_log, DType dtype) {
  auto mamba = std::make_unique<Mamba>(
      MambaConfig{.d_model = 1, .d_state = 1, .d_conv = 1, .expand = 1, .dt_rank = 1, .conv_bias = false}, Rng(1));
  mamba->to(dtype);
  const auto one = [&](Shape shape, double value) { return Tensor::full(shape, value, dtype); };
  const Tensor in_proj = one({2, 1}, 1), x_proj = one({3, 1}, 1);
  mamba->set_named_parameters({{"in_proj.weight", in_proj},
                               {"conv1d.weight", one({1, 1, 1}, 1)},
                               {"x_proj.weight", x_proj},
                               {"dt_proj.weight", one({1, 1}, 0)},
                               {"dt_proj.bias", one({1}, dt_bias)},
                               {"A_log", one({1, 1}, A_log)},
                               {"D", one({1}, 0)},
                               {"out_proj.weight", one({1, 1}, 1)}});
  return mamba;
}

// A decay rate beyond the range of float with a step below it: no inf·0, forwards or backwards.
TEST(FieldReport, P4_ExtremeDecayRatesStayFinite) {
  Context ctx = Context::serial();
  for (const double A_log : {-100, 0, 88, 89, 100}) {
    for (const double dt_bias : {-200.0, -100.0, -15.0, 0.0, 20.1, 1e4}) {
      const auto mamba = one_channel(dt_bias, A_log, DType::F32);
      const Variable x = Variable::leaf(Tensor::full({1, 4, 1}, 1));
      const layers::LayerOutput out = mamba->forward(ctx, x, mamba->zero_state(1));
      const Gradients gradients = backward(ctx, sum(ctx, out.y));
      const std::string what = "A_log " + std::to_string(A_log) + ", dt_bias " + std::to_string(dt_bias);
      EXPECT_TRUE(std::isfinite(out.y.value().at(3))) << what;
      EXPECT_TRUE(std::isfinite(gradients.of(x).at(0))) << what;
      for (const layers::Parameter* p : mamba->parameters()) {
        EXPECT_TRUE(std::isfinite(gradients.of(p->value).at(0))) << p->name << " at " << what;
      }
    }
  }
}

// The bounds of the first step sizes are not limits at run time: a step of 6.14e-6 stays 6.14e-6.
TEST(FieldReport, P11_InitialStepLimitsDoNotClampTheStep) {
  NoGrad constant;
  Context ctx = Context::serial();
  const auto mamba = one_channel(-12, 0, DType::F64);
  const Tensor x = Tensor::full({1, 3, 1}, 1, DType::F64);
  const double u = 1 / (1 + std::exp(-1.0)), dt = std::log1p(std::exp(-12.0));
  ASSERT_NEAR(dt, 6.14e-6, 1e-8);
  const layers::LayerOutput whole = mamba->forward(ctx, x);
  double h = 0;
  for (int t = 0; t < 3; ++t) h = std::exp(-dt) * h + dt * u * u;
  EXPECT_NEAR(whole.state[1].value().at(0), h, 1e-14);
  layers::State state;
  for (int t = 0; t < 3; ++t) state = mamba->forward(ctx, time_slice(x, t, 1), std::move(state)).state;
  expect_same_bits(state, whole.state, "steps");
}

// Falcon-Mamba's norms of the step, B and C: once, before dt_proj, off when the flag is off.
TEST(FieldReport, P47_FalconNormsApplyOnce) {
  NoGrad constant;
  Context ctx = Context::serial();
  const auto state_after = [&](bool falcon, double eps) {
    Mamba mamba(MambaConfig{.d_model = 1,
                            .d_state = 2,
                            .d_conv = 1,
                            .d_inner = 1,
                            .dt_rank = 1,
                            .conv_bias = false,
                            .falcon_rms = falcon,
                            .mixer_rms_eps = eps},
                Rng(1));
    mamba.to(DType::F64);
    const auto tensor = [](Shape shape, std::vector<double> values) { return Tensor::from<double>(values, shape); };
    const double u = 1 / (1 + std::exp(-1.0));  // silu(1): x_proj is scaled so that r = 2, B = [3, 4], C = [1, 1]
    mamba.set_named_parameters({{"in_proj.weight", tensor({2, 1}, {1, 1})},
                                {"conv1d.weight", tensor({1, 1, 1}, {1})},
                                {"x_proj.weight", tensor({5, 1}, {2 / u, 3 / u, 4 / u, 1 / u, 1 / u})},
                                {"dt_proj.weight", tensor({1, 1}, {30})},
                                {"dt_proj.bias", tensor({1}, {0})},
                                {"A_log", tensor({1, 2}, {0, 0})},
                                {"D", tensor({1}, {0})},
                                {"out_proj.weight", tensor({1, 1}, {1})}});
    const layers::LayerOutput out = mamba.forward(ctx, Tensor::full({1, 1, 1}, 1, DType::F64));
    // h = dt·u·B, and dt = 30·r above softplus's threshold.
    return std::pair(out.state[1].value().at(0) / u, out.state[1].value().at(1) / u);
  };
  const double root = std::sqrt(12.5 + 1e-6), r = 2 / std::sqrt(4 + 1e-6);
  auto [first, second] = state_after(true, 1e-6);
  EXPECT_NEAR(first / (30 * r), 3 / root, 1e-12);
  EXPECT_NEAR(second / (30 * r), 4 / root, 1e-12);
  EXPECT_NEAR(first / (30 * r), 0.84853, 1e-5);
  EXPECT_NEAR(second / (30 * r), 1.13137, 1e-5);
  std::tie(first, second) = state_after(false, 1e-6);
  EXPECT_NEAR(first, 60 * 3, 1e-10);
  EXPECT_NEAR(second, 60 * 4, 1e-10);
}

// Training, evaluation with prepared weights, and steps: the same bits, with the norms in all of them.
TEST(FieldReport, P47_FalconNormsAreInEveryPath) {
  Context ctx = Context::serial();
  const MambaConfig config{.d_model = 12, .falcon_rms = true, .init = MambaInit::Active};
  Mamba mamba(config, Rng(2)), plain(MambaConfig{.d_model = 12, .init = MambaInit::Active}, Rng(2));
  const Tensor x = random_input({2, 9, 12}, "x", DType::F32);
  const Tensor trained = mamba.forward(ctx, x).y.value();
  EXPECT_FALSE(plain.forward(ctx, x).y.value().same_bits(trained));
  NoGrad constant;
  mamba.prepare(ctx);
  expect_same_bits(mamba.forward(ctx, x).y.value(), trained, "evaluation");
  expect_same_bits(in_pieces(ctx, mamba, x, {}, std::vector<std::int64_t>(9, 1)).y.value(), trained, "steps");
}

// Sizes that are no multiple of anything: right outputs, and steps equal the whole.
TEST(FieldReport, P19_AnyShapeWorks) {
  NoGrad constant;
  Context ctx = Context::serial();
  for (const std::int64_t width : {1, 8, 20, 36}) {
    for (const std::int64_t N : {1, 7, 16, 96}) {
      for (const std::int64_t K : {1, 2, 3, 4, 8}) {
        const MambaConfig config{.d_model = width, .d_state = N, .d_conv = K, .init = MambaInit::Active};
        const Mamba mamba(config, Rng(2));
        Mamba wide(config, Rng(2));
        wide.to(DType::F64);
        for (const std::int64_t batch : {1, 3}) {
          const Tensor x = random_input({batch, 5, width}, "x", DType::F32);
          const layers::LayerOutput whole = mamba.forward(ctx, x);
          expect_close(whole.y.value(), wide.forward(ctx, x.to(DType::F64)).y.value(), 2e-5, "against double");
          layers::State state;
          for (std::int64_t t = 0; t < 5; ++t) {
            layers::LayerOutput step = mamba.forward(ctx, time_slice(x, t, 1), std::move(state));
            expect_same_bits(step.y.value(), time_slice(whole.y.value(), t, 1), "y");
            state = std::move(step.state);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepwell
