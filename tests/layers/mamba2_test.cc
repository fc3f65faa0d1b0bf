// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/mamba2.h"

#include <cmath>
#include <limits>

#include "tests/layers/mixer_case.h"
#include "tests/layers/parameters_of.h"

namespace stepwell {
namespace {

using layers::DecayInit;
using layers::Mamba2;
using layers::Mamba2Config;

Config options(std::string_view json) { return io::parse_json(json, "options"); }

TEST(Mamba2Config, ResolvesWhatIsLeftOut) {
  Mamba2Config c = Mamba2Config::read(64, {});
  EXPECT_EQ(c.d_inner, 128);
  EXPECT_EQ(c.d_ssm, 128);
  EXPECT_EQ(c.norm_group_size, 128);
  EXPECT_EQ(c.dt_limit.low, 0);
  EXPECT_TRUE(std::isinf(c.dt_limit.high));
  c = Mamba2Config::read(16, options(R"({"expand": 16, "d_inner": 24, "d_ssm": 12, "headdim": 6, "ngroups": 2})"));
  EXPECT_EQ(c.d_inner, 24) << "an explicit width wins";
  EXPECT_EQ(c.norm_group_size, 6);
  EXPECT_EQ(Mamba2Config::read(16, c.options()).options(), c.options());
  const Mamba2 by_hand({.d_model = 16, .headdim = 8}, Rng(1));
  EXPECT_EQ(by_hand.config(), Mamba2Config::read(16, options(R"({"headdim": 8})")).options());
}

// Hugging Face's names, alone and beside the others, which then do not count.
TEST(Mamba2Config, TakesBothSpellings) {
  const Config ours = options(R"({"d_state": 5, "d_conv": 3, "headdim": 4, "nheads": 8, "ngroups": 2, "rmsnorm": false,
      "norm_eps": 1e-3, "bias": true, "conv_bias": false, "dt_limit": [0.01, 0.2], "dt_min": 0.01, "dt_max": 0.5,
      "dt_init_floor": 0.02})");
  const Config theirs = options(R"({"hidden_size": 16, "state_size": 5, "conv_kernel": 3, "head_dim": 4, "num_heads": 8,
      "n_groups": 2, "rms_norm": false, "layer_norm_epsilon": 1e-3, "use_bias": true, "use_conv_bias": false,
      "time_step_limit": [0.01, 0.2], "time_step_min": 0.01, "time_step_max": 0.5, "time_step_floor": 0.02,
      "chunk_size": 256, "expand": 2})");
  EXPECT_EQ(Mamba2Config::read(16, theirs).options(), Mamba2Config::read(16, ours).options());
  const Mamba2Config both = Mamba2Config::read(16, options(R"({"d_state": 5, "state_size": 7, "headdim": 4})"));
  EXPECT_EQ(both.d_state, 7);
}

TEST(Mamba2Config, TakesEverySpellingOfNoLimit) {
  for (const char* high : {"null", R"("inf")", R"("Infinity")", "1e30", "3.5e38"}) {
    const std::string json = std::string(R"({"headdim": 4, "dt_limit": [0.0, )") + high + "]}";
    EXPECT_TRUE(std::isinf(Mamba2Config::read(16, options(json)).dt_limit.high)) << high;
  }
  Config infinite;
  infinite.set("headdim", 4);
  infinite.set("time_step_limit", Config::Array{0.0, std::numeric_limits<double>::infinity()});
  EXPECT_TRUE(std::isinf(Mamba2Config::read(16, infinite).dt_limit.high));
  EXPECT_EQ(Mamba2Config::read(16, options(R"({"headdim": 4, "dt_limit": [null, 0.5]})")).dt_limit.low, 0);
}

TEST(Mamba2Config, RefusesWhatIsWrongNamingIt) {
  const auto message = [](std::string_view json) {
    return message_of([&] { Mamba2(Mamba2Config::read(16, options(json)), Rng(1)); });
  };
  for (const auto& [json, word] :
       std::vector<std::pair<const char*, const char*>>{{R"({})", "headdim"},  // 64 into 32
                                                        {R"({"headdim": 5})", "headdim = 5"},
                                                        {R"({"head_dim": 5})", "head_dim = 5"},
                                                        {R"({"headdim": 4, "nheads": 7})", "nheads = 7"},
                                                        {R"({"headdim": 4, "ngroups": 3})", "ngroups"},
                                                        {R"({"headdim": 4, "d_ssm": 40})", "d_ssm"},
                                                        {R"({"headdim": 4, "norm_group_size": 5})", "norm_group_size"},
                                                        {R"({"headdim": 4, "dt_limit": [1]})", "dt_limit"},
                                                        {R"({"headdim": 4, "dt_limit": [1, 0.5]})", "dt_limit"},
                                                        {R"({"headdim": 4, "dt_limit": [-1, 0.5]})", "dt_limit"},
                                                        {R"({"headdim": 4, "dt_limit": "none"})", "dt_limit"},
                                                        {R"({"headdim": 4, "A_init_range": [16, 1]})", "A_init_range"},
                                                        {R"({"headdim": 4, "d_stat": 4})", "did you mean d_state"}}) {
    EXPECT_NE(message(json).find(word), std::string::npos) << json << ": " << message(json);
  }
  EXPECT_THROW(Mamba2({}, Rng(1)), Error) << "a width of 0";
}

TEST(Mamba2, HasThePublishedNamesShapesAndDecay) {
  const Mamba2 layer({.d_model = 8,
                      .d_state = 3,
                      .d_inner = 20,
                      .d_ssm = 12,
                      .headdim = 3,
                      .ngroups = 2,
                      .D_has_hdim = true,
                      .bias = true,
                      .learnable_init_states = true},
                     Rng(1));
  expect_parameters(layer, {{"in_proj.weight", {40 + 12 + 4, 8}, true},
                            {"in_proj.bias", {56}, false},
                            {"conv1d.weight", {24, 1, 4}, true},
                            {"conv1d.bias", {24}, false},
                            {"dt_bias", {4}, false},
                            {"A_log", {4}, false},
                            {"D", {12}, false},
                            {"norm.weight", {12}, false},
                            {"out_proj.weight", {8, 20}, true},
                            {"out_proj.bias", {8}, false},
                            {"init_states", {4, 3, 3}, false}});
  EXPECT_EQ(Mamba2({.d_model = 8, .headdim = 4, .rmsnorm = false, .conv_bias = false}, Rng(1)).parameters().size(), 6u);
}

// Sequences without a state start from what the layer has learned, packed ones and streams too; its gradient is the sum
// over the sequences.
TEST(Mamba2, StartsFromLearnedStates) {
  Context ctx = Context::serial();
  Mamba2 layer({.d_model = 6, .d_state = 3, .headdim = 4, .learnable_init_states = true}, Rng(1));
  layer.to(DType::F64);
  layers::Parameter& learned = *layer.parameters().back();
  ASSERT_EQ(learned.name, "init_states");
  learned.set(random_input({3, 4, 3}, "states", DType::F64));
  const Tensor x = random_input({1, 5, 6}, "x", DType::F64);
  const layers::LayerOutput out = layer.forward(ctx, x, {}, {{0, 2, 2, 5}, {}});
  const layers::LayerOutput given = layer.forward(ctx, x, layer.initial_state(ctx, 3), {{0, 2, 2, 5}, {}});
  expect_same_bits(given.y.value(), out.y.value(), "y");
  expect_same_bits(given.state, out.state, "state");
  EXPECT_FALSE(layer.forward(ctx, x, layer.zero_state(3), {{0, 2, 2, 5}, {}}).y.value().same_bits(out.y.value()));

  const Variable untouched = layer.export_state(ctx, out.state)[1];
  expect_same_bits(untouched.value().slice(0, 1, 1).clone().reshape({3, 4, 3}), learned.value.value(),
                   "an empty sequence");
  const Tensor cotangent = random_input({3, 3, 4, 3}, "cotangent", DType::F64);
  cotangent.slice(0, 0, 1).fill(0);
  cotangent.slice(0, 2, 1).fill(0);
  const Gradients gradients = backward(ctx, std::span(&untouched, 1), std::span(&cotangent, 1));
  expect_close(gradients.of(learned.value), cotangent.slice(0, 1, 1).clone().reshape({3, 4, 3}), 1e-12, "gradient");
}

TEST(Mamba2, RefusesForeignStates) {
  Context ctx = Context::serial();
  const Mamba2 layer({.d_model = 6, .d_state = 3, .headdim = 4}, Rng(1));
  std::vector<Variable> fields = layer.export_state(ctx, layer.zero_state(2));
  EXPECT_EQ(fields[0].shape(), Shape({2, 18, 4}));
  EXPECT_EQ(fields[1].shape(), Shape({2, 3, 4, 3}));
  fields[1] = Tensor::zeros({2, 3, 5, 3});
  EXPECT_NE(message_of([&] { layer.import_state(ctx, fields); }).find("ssm_state is [2, 3, 5, 3]"), std::string::npos);
  fields.pop_back();
  EXPECT_THROW(layer.import_state(ctx, fields), Error);
}

// ------------------------------------------------------------------------------------------------- Field reports

TEST(FieldReport, P37_FirstStepsAndDecaysOfMamba2) {
  const Mamba2Config config{.d_model = 1, .d_state = 1, .d_inner = 4096, .headdim = 1};
  const auto p = parameters_of(Mamba2(config, Rng(9)));
  expect_log_uniform_steps(p.at("dt_bias"));
  double sum = 0;
  for (std::int64_t i = 0; i < 4096; ++i) {
    const double A = std::exp(p.at("A_log").at(i));
    EXPECT_GT(A, 1 - 1e-6);
    EXPECT_LE(A, 16 * (1 + 1e-6));
    sum += A / 4096;
  }
  EXPECT_NEAR(sum, 8.5, 0.3);
  auto ordinal = config;
  ordinal.A_init = DecayInit::Ordinal;
  const auto q = parameters_of(Mamba2(ordinal, Rng(9)));
  for (const std::int64_t i : {0, 1, 4095}) {
    EXPECT_FLOAT_EQ(static_cast<float>(q.at("A_log").at(i)), std::log(static_cast<float>(i + 1)));
  }
}

// One head of one channel: its input is u = silu(1) and B = C = u in every token, its step softplus(bias).
std::unique_ptr<Mamba2> one_channel(double dt_bias, layers::StepLimits limits) {
  auto layer = std::make_unique<Mamba2>(Mamba2Config{.d_model = 1,
                                                     .d_state = 1,
                                                     .d_conv = 1,
                                                     .expand = 1,
                                                     .headdim = 1,
                                                     .rmsnorm = false,
                                                     .dt_limit = limits,
                                                     .conv_bias = false},
                                        Rng(1));
  layer->to(DType::F64);
  const auto value = [](Shape shape, std::vector<double> values) { return Tensor::from<double>(values, shape); };
  layer->set_named_parameters({{"in_proj.weight", value({5, 1}, {1, 1, 1, 1, 0})},
                               {"conv1d.weight", value({3, 1, 1}, {1, 1, 1})},
                               {"dt_bias", value({1}, {dt_bias})},
                               {"A_log", value({1}, {0})},
                               {"D", value({1}, {0})},
                               {"out_proj.weight", value({1, 1}, {1})}});
  return layer;
}

// Limits of the step act after softplus, in a run and in steps, and only those meant for run time; outside them the
// gradient is 0.
TEST(FieldReport, P11_StepLimits) {
  Context ctx = Context::serial();
  const double u = 1 / (1 + std::exp(-1.0));
  struct Row {
    double dt_bias;
    layers::StepLimits limits;
    double step;
    bool limited;
  };
  for (const Row& row : {Row{-12, {}, std::log1p(std::exp(-12.0)), false}, Row{-12, {0.01, 0.1}, 0.01, true},
                         Row{3, {0.01, 0.1}, 0.1, true}, Row{-3, {0.01, 0.1}, std::log1p(std::exp(-3.0)), false}}) {
    const auto layer = one_channel(row.dt_bias, row.limits);
    const Tensor x = Tensor::full({1, 3, 1}, 1, DType::F64);
    const layers::LayerOutput whole = layer->forward(ctx, x);
    double h = 0;
    for (int t = 0; t < 3; ++t) h = std::exp(-row.step) * h + row.step * u * u;
    EXPECT_NEAR(layer->export_state(ctx, whole.state)[1].value().at(0), h, 1e-14) << row.dt_bias;
    const layers::LayerOutput steps = in_pieces(ctx, *layer, x, {}, {1, 1, 1});
    expect_same_bits(steps.state, whole.state, "steps");
    const Gradients gradients = backward(ctx, sum(ctx, whole.y));
    for (const layers::Parameter* p : layer->parameters()) {
      if (p->name != "dt_bias") continue;
      EXPECT_EQ(gradients.of(p->value).at(0) == 0, row.limited) << row.dt_bias;
    }
  }
}

// Head h reads group ⌊h/(H/G)⌋: with B constant g + 1 in group g, C and the inputs alike everywhere and a state without
// memory, head h gives ⌊h/(H/G)⌋ + 1 times head 0.
TEST(FieldReport, P17_HeadsReadTheirOwnGroup) {
  NoGrad constant;
  Context ctx = Context::serial();
  for (const auto& [H, G] : {std::pair{4, 2}, {6, 3}, {64, 8}, {5, 1}, {7, 7}}) {
    Mamba2 layer({.d_model = H,
                  .d_state = 2,
                  .d_conv = 1,
                  .expand = 1,
                  .headdim = 1,
                  .ngroups = G,
                  .rmsnorm = false,
                  .conv_bias = false},
                 Rng(1));
    layer.to(DType::F64);
    layers::NamedTensors parameters;
    for (const auto& [name, tensor] : layer.named_parameters()) {
      const Tensor value = Tensor::zeros(tensor.shape(), DType::F64);
      if (name == "conv1d.weight" || name == "dt_bias") value.fill(1);
      if (name == "A_log") value.fill(50);  // forgets at once
      if (name ==
          "in_proj.weight") {  // x = 1 in the first channel: z, x, C all 1; B of group g such that silu is g + 1
        const auto set = [&](std::int64_t row, double v) { value.data<double>()[row * H] = v; };
        for (std::int64_t h = 0; h < 2 * H; ++h) set(h, 1);
        for (std::int64_t i = 0; i < 2 * G; ++i) {
          double b = static_cast<double>(i / 2 + 1);
          for (int n = 0; n < 200; ++n) b = static_cast<double>(i / 2 + 1) * (1 + std::exp(-b));
          set(2 * H + i, b);
          set(2 * H + 2 * G + i, 1);
        }
      }
      if (name == "out_proj.weight") {
        for (std::int64_t h = 0; h < H; ++h) value.data<double>()[h * H + h] = 1;
      }
      parameters.emplace_back(name, value);
    }
    layer.set_named_parameters(parameters);
    const Tensor x = Tensor::zeros({1, 2, H}, DType::F64);
    for (int t = 0; t < 2; ++t) x.data<double>()[t * H] = 1;
    const Tensor y = layer.forward(ctx, x).y.value();
    for (std::int64_t h = 0; h < H; ++h) {
      EXPECT_NEAR(y.at(H + h) / y.at(H), static_cast<double>(h / (H / G) + 1), 1e-12) << "head " << h << " of " << H;
    }
  }
}

// Each group of channels is normalised by itself; a gate acts before the norm or after it.
TEST(FieldReport, P18_GatedNormGroups) {
  Context ctx = Context::serial();
  const Tensor x = Tensor::from<double>(std::vector<double>{1, 1, 1, 1, 3, 3, 3, 3}, {1, 8});
  const Tensor z = Tensor::full({1, 8}, 1, DType::F64), weight = Tensor::full({8}, 1, DType::F64);
  const auto norm = [&](GateOrder order, std::int64_t group) {
    return gated_rms_norm(ctx, x, z, weight, 0, order, group).value();
  };
  for (const auto& [order, group, low, high] : {std::tuple{GateOrder::After, 4, 0.73106, 0.73106},
                                                {GateOrder::Before, 4, 1.0, 1.0},
                                                {GateOrder::After, 8, 0.32694, 0.98082},
                                                {GateOrder::Before, 8, 0.44721, 1.34164}}) {
    const Tensor y = norm(order, group);
    EXPECT_NEAR(y.at(0), low, 1e-5);
    EXPECT_NEAR(y.at(7), high, 1e-5);
  }
}

// Sizes that are no multiple of anything: finite, and steps equal the whole.
TEST(FieldReport, P19_AnyShapeOfMamba2Works) {
  NoGrad constant;
  Context ctx = Context::serial();
  for (const std::int64_t width : {1, 8, 20, 36}) {
    for (const std::int64_t N : {1, 7, 96}) {
      for (const std::int64_t K : {1, 2, 3, 8}) {
        const Mamba2 layer({.d_model = width, .d_state = N, .d_conv = K, .headdim = width == 36 ? 24 : 2}, Rng(2));
        for (const std::int64_t batch : {1, 3}) {
          const Tensor x = random_input({batch, 5, width}, "x", DType::F32);
          const layers::LayerOutput whole = layer.forward(ctx, x);
          const layers::LayerOutput steps = in_pieces(ctx, layer, x, {}, {1, 1, 1, 1, 1});
          expect_same_bits(steps.y.value(), whole.y.value(), "y");
          for (const float v : whole.y.value().span<float>()) ASSERT_TRUE(std::isfinite(v)) << width << " " << N;
        }
      }
    }
  }
  EXPECT_NE(message_of([] { Mamba2({.d_model = 16}, Rng(1)); }).find("a divisor of the inner width 32"),
            std::string::npos);
}

}  // namespace
}  // namespace stepwell
