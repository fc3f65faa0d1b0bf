// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// The mixers built on the gated delta rule: names, sizes, options and first values. What they compute is checked by
// golden_test.cc, what every mixer promises by conformance_test.cc.
#include <cmath>

#include "stepwell/layers/delta_net.h"
#include "stepwell/layers/gated_delta_net.h"
#include "stepwell/layers/gated_delta_net2.h"
#include "stepwell/layers/gated_linear_attention.h"
#include "stepwell/layers/kimi_delta_attention.h"

#include "tests/layers/mixer_case.h"
#include "tests/layers/parameters_of.h"

namespace stepwell {
namespace {

using layers::DeltaInit;
using layers::DeltaNet;
using layers::GatedDeltaNet;
using layers::GatedDeltaNet2;
using layers::GatedLinearAttention;
using layers::KimiDeltaAttention;
using layers::State;

// The published sizes.
TEST(DeltaLayers, HaveThePublishedNumbersOfParameters) {
  const GatedDeltaNet2 large({.hidden_size = 2304}, Rng(1));
  EXPECT_EQ(large.parameter_count(), 29'454'480);
  const std::int64_t feed_forward = std::int64_t{3} * 2304 * 6208, norms = 2 * 2304;
  EXPECT_EQ(18 * (large.parameter_count() + feed_forward + norms), 1'302'638'112) << "the blocks of the 1.3B model";
  EXPECT_EQ(GatedDeltaNet2({.hidden_size = 2048}, Rng(1)).parameter_count(), 26'243'216);
  EXPECT_EQ(KimiDeltaAttention({.hidden_size = 2048}, Rng(1)).parameter_count(), 17'887'376);
  EXPECT_EQ(GatedDeltaNet({.hidden_size = 2048}, Rng(1)).parameter_count(), 25'215'500);
}

TEST(DeltaLayers, HaveThePublishedNamesShapesAndDecay) {
  // 2 key heads of 4, 4 value heads of 6.
  const std::vector<ParameterRow> shared = {
      {"q_proj.weight", {8, 10}, true},     {"k_proj.weight", {8, 10}, true},     {"v_proj.weight", {24, 10}, true},
      {"q_conv1d.weight", {8, 1, 3}, true}, {"k_conv1d.weight", {8, 1, 3}, true}, {"v_conv1d.weight", {24, 1, 3}, true},
      {"q_conv1d.bias", {8}, false},        {"k_conv1d.bias", {8}, false},        {"v_conv1d.bias", {24}, false},
      {"o_norm.weight", {6}, false},        {"o_proj.weight", {10, 24}, true}};
  const auto with = [&](std::vector<ParameterRow> more) {
    more.insert(more.end(), shared.begin(), shared.end());
    return more;
  };
  expect_parameters(GatedDeltaNet2({.hidden_size = 10,
                                    .num_heads = 2,
                                    .num_v_heads = 4,
                                    .head_dim = 4,
                                    .expand_v = 1.5,
                                    .conv_size = 3,
                                    .conv_bias = true},
                                   Rng(1)),
                    with({{"f_proj.0.weight", {6, 10}, true},
                          {"f_proj.1.weight", {8, 6}, true},
                          {"A_log", {2}, false},
                          {"dt_bias", {8}, false},
                          {"b_proj.weight", {8, 10}, true},
                          {"w_proj.weight", {24, 10}, true},
                          {"g_proj.0.weight", {6, 10}, true},
                          {"g_proj.1.weight", {24, 6}, true},
                          {"g_proj.1.bias", {24}, false}}));
  expect_parameters(KimiDeltaAttention({.hidden_size = 10,
                                        .num_heads = 2,
                                        .num_v_heads = 4,
                                        .head_dim = 4,
                                        .expand_v = 1.5,
                                        .conv_size = 3,
                                        .conv_bias = true},
                                       Rng(1)),
                    with({{"f_proj.0.weight", {6, 10}, true},
                          {"f_proj.1.weight", {16, 6}, true},
                          {"A_log", {4}, false},
                          {"dt_bias", {16}, false},
                          {"b_proj.weight", {4, 10}, true},
                          {"g_proj.0.weight", {6, 10}, true},
                          {"g_proj.1.weight", {24, 6}, true},
                          {"g_proj.1.bias", {24}, false}}));
  expect_parameters(GatedDeltaNet({.hidden_size = 10,
                                   .num_heads = 2,
                                   .num_v_heads = 4,
                                   .head_dim = 4,
                                   .expand_v = 1.5,
                                   .conv_size = 3,
                                   .conv_bias = true},
                                  Rng(1)),
                    with({{"a_proj.weight", {4, 10}, true},
                          {"A_log", {4}, false},
                          {"dt_bias", {4}, false},
                          {"b_proj.weight", {4, 10}, true},
                          {"g_proj.weight", {24, 10}, true}}));
  expect_parameters(
      DeltaNet({.hidden_size = 8, .num_heads = 2, .expand_v = 2, .use_gate = true, .use_short_conv = false}, Rng(1)),
      {{"q_proj.weight", {8, 8}, true},
       {"k_proj.weight", {8, 8}, true},
       {"v_proj.weight", {16, 8}, true},
       {"b_proj.weight", {2, 8}, true},
       {"g_proj.weight", {16, 8}, true},
       {"o_norm.weight", {8}, false},
       {"o_proj.weight", {8, 16}, true}});
  expect_parameters(
      GatedLinearAttention({.hidden_size = 8, .num_heads = 4, .num_kv_heads = 2, .gate_low_rank_dim = 3}, Rng(1)),
      {{"q_proj.weight", {4, 8}, true},
       {"k_proj.weight", {2, 8}, true},
       {"v_proj.weight", {4, 8}, true},
       {"gk_proj.0.weight", {3, 8}, true},
       {"gk_proj.1.weight", {2, 3}, true},
       {"gk_proj.1.bias", {2}, false},
       {"g_proj.weight", {8, 8}, true},
       {"g_norm_swish_gate.weight", {2}, false},
       {"o_proj.weight", {8, 8}, true}});
  EXPECT_TRUE(parameters_of(GatedLinearAttention({.hidden_size = 8, .use_output_gate = false}, Rng(1)))
                  .contains("g_norm.weight"));
}

TEST(DeltaLayers, RefuseWhatIsWrongNamingIt) {
  const auto message = [](const char* mixer, std::string_view json) {
    return message_of([&] { layers::find_mixer(mixer).make(12, io::parse_json(json, "options"), Rng(1)); });
  };
  for (const auto& [mixer, json, word] : std::vector<std::tuple<const char*, const char*, const char*>>{
           {"gated_delta_net2", R"({"hidden_size": 13})", "hidden_size = 13"},
           {"gated_delta_net2", R"({"num_heads": 4, "num_v_heads": 6})", "num_v_heads"},
           {"gated_delta_net", R"({"num_heads": 6, "num_v_heads": 4})", "a multiple of num_heads = 6"},
           {"kimi_delta_attention", R"({"head_dim": 5, "expand_v": 0.5})", "expand_v"},
           {"kimi_delta_attention", R"({"lower_bound": 0})", "lower_bound"},
           {"gated_delta_net2", R"({"output_gate": "tanh"})", "output_gate"},
           {"gated_delta_net", R"({"safe_gate": true})", "unknown key safe_gate"},
           {"delta_net", R"({"num_heads": 5})", "expand_k"},
           {"delta_net", R"({"qk_norm": "l1"})", "qk_norm"},
           {"gated_linear_attention", R"({"num_heads": 3, "expand_k": 1, "num_kv_heads": 2})",
            "a divisor of num_heads"},
           {"gated_linear_attention", R"({"num_heads": 1, "clamp_min": 1})", "clamp_min"}}) {
    EXPECT_NE(message(mixer, json).find(word), std::string::npos) << json << ": " << message(mixer, json);
  }
  EXPECT_THROW(GatedDeltaNet2({}, Rng(1)), Error) << "a width of 0";
  EXPECT_THROW(DeltaNet({.hidden_size = 8, .num_heads = 0}, Rng(1)), Error);
}

TEST(DeltaLayers, RefuseForeignStates) {
  Context ctx = Context::serial();
  const GatedDeltaNet2 layer({.hidden_size = 8, .num_heads = 1, .head_dim = 4}, Rng(1));
  std::vector<Variable> fields = layer.export_state(ctx, layer.zero_state(2));
  EXPECT_EQ(fields[0].shape(), Shape({2, 4, 4}));
  EXPECT_EQ(fields[3].shape(), Shape({2, 1, 4, 4}));
  fields[3] = Tensor::zeros({2, 1, 4, 3});
  EXPECT_NE(message_of([&] { layer.import_state(ctx, fields); }).find("recurrent_state is [2, 1, 4, 3]"),
            std::string::npos);
  fields.pop_back();
  EXPECT_THROW(layer.import_state(ctx, fields), Error);
}

// The two output gates have the same parameters and differ.
TEST(DeltaLayers, OutputGatesDiffer) {
  NoGrad constant;
  Context ctx = Context::serial();
  const layers::GatedDeltaNet2Config config{.hidden_size = 8, .num_heads = 1, .head_dim = 4};
  auto swish = config;
  swish.output_gate = GateActivation::Silu;
  const Tensor x = random_input({1, 3, 8}, "x", DType::F32);
  EXPECT_FALSE(GatedDeltaNet2(config, Rng(1))
                   .forward(ctx, x)
                   .y.value()
                   .same_bits(GatedDeltaNet2(swish, Rng(1)).forward(ctx, x).y.value()));
}

double deviation(const Tensor& t) {
  double square = 0;
  for (std::int64_t i = 0; i < t.numel(); ++i) square += t.at(i) * t.at(i);
  return std::sqrt(square / static_cast<double>(t.numel()));
}
double largest(const Tensor& t) {
  double most = 0;
  for (std::int64_t i = 0; i < t.numel(); ++i) most = std::max(most, std::abs(t.at(i)));
  return most;
}

TEST(DeltaLayers, FirstValuesFollowTheOption) {
  const auto make = [](DeltaInit init) {
    return parameters_of(
        GatedDeltaNet2({.hidden_size = 64, .num_heads = 2, .head_dim = 32, .conv_bias = true, .init = init}, Rng(5)));
  };
  const auto uniform = make(DeltaInit::Uniform), normal = make(DeltaInit::Normal), xavier = make(DeltaInit::Xavier);
  EXPECT_NEAR(largest(uniform.at("q_proj.weight")), 1 / 8.0, 1e-3);
  EXPECT_NEAR(largest(uniform.at("v_conv1d.weight")), 0.5, 0.02);
  EXPECT_GT(largest(uniform.at("g_proj.1.bias")), 0.1);
  EXPECT_NEAR(deviation(normal.at("q_proj.weight")), 0.02, 1e-3);
  EXPECT_NEAR(deviation(normal.at("k_conv1d.weight")), 0.02, 3e-3);
  const double bound = std::exp2(-2.5) * std::sqrt(6.0 / (64 + 64));
  EXPECT_LE(largest(xavier.at("q_proj.weight")), bound);
  EXPECT_NEAR(largest(xavier.at("q_proj.weight")), bound, 0.01 * bound);
  for (const auto* p : {&normal, &xavier}) {
    EXPECT_EQ(largest(p->at("g_proj.1.bias")), 0);
    EXPECT_EQ(largest(p->at("q_conv1d.bias")), 0);
    EXPECT_TRUE(p->at("A_log").same_bits(uniform.at("A_log"))) << "every tensor has its own stream";
    EXPECT_TRUE(p->at("dt_bias").same_bits(uniform.at("dt_bias")));
  }
  for (std::int64_t i = 0; i < 32; ++i) EXPECT_EQ(uniform.at("o_norm.weight").at(i), 1);
}

// ------------------------------------------------------------------------------------------------- Field reports

TEST(FieldReport, P37_FirstDecaysAreAsPublished) {
  const auto gdn2 = parameters_of(GatedDeltaNet2({.hidden_size = 4, .num_heads = 64, .head_dim = 64}, Rng(9)));
  expect_log_uniform_steps(gdn2.at("dt_bias"));
  const auto kda = parameters_of(KimiDeltaAttention({.hidden_size = 4, .num_heads = 64, .head_dim = 64}, Rng(9)));
  expect_log_uniform_steps(kda.at("dt_bias"));
  const auto gdn = parameters_of(GatedDeltaNet({.hidden_size = 2, .num_heads = 4096, .head_dim = 1}, Rng(9)));
  expect_log_uniform_steps(gdn.at("dt_bias"));
  const auto decay_rates = [](const Tensor& A_log, double low, double high) {
    double sum = 0;
    for (std::int64_t i = 0; i < A_log.numel(); ++i) {
      const double A = std::exp(A_log.at(i));
      EXPECT_GT(A, low * (1 - 1e-6));
      EXPECT_LE(A, high * (1 + 1e-6));
      sum += A;
    }
    return sum / static_cast<double>(A_log.numel());
  };
  EXPECT_NEAR(decay_rates(gdn2.at("A_log"), 1, 16), 8.5, 2);
  EXPECT_NEAR(decay_rates(kda.at("A_log"), 1, 16), 8.5, 2);
  EXPECT_NEAR(decay_rates(gdn.at("A_log"), 0, 16), 8, 0.3);
  const auto safe =
      parameters_of(KimiDeltaAttention({.hidden_size = 4, .num_heads = 4, .head_dim = 8, .safe_gate = true}, Rng(9)));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(safe.at("A_log").at(i), 0);
  EXPECT_TRUE(parameters_of(GatedDeltaNet2({.hidden_size = 4, .num_heads = 64, .head_dim = 64}, Rng(9)))
                  .at("dt_bias")
                  .same_bits(gdn2.at("dt_bias")));
}

// Rows of every head in `tensor`, count times each.
Tensor repeated(const Tensor& tensor, std::int64_t heads, std::int64_t count) {
  const std::int64_t rows = tensor.size(0) / heads;
  Shape shape = tensor.shape();
  shape[0] *= count;
  const Tensor result = Tensor::empty(shape, tensor.dtype());
  for (std::int64_t h = 0; h < heads * count; ++h) {
    result.slice(0, h * rows, rows).copy_from(tensor.slice(0, h / count * rows, rows));
  }
  return result;
}

// Grouped value heads: value head j reads key head ⌊j·H/HV⌋, as if every key head were there several times.
TEST(FieldReport, P17_GroupedValueHeadsEqualRepeatedKeyHeads) {
  NoGrad constant;
  Context ctx = Context::serial();
  for (const auto& [H, HV] : {std::pair{2, 4}, {16, 32}, {1, 3}}) {
    const GatedDeltaNet2 grouped({.hidden_size = 8, .num_heads = H, .num_v_heads = HV, .head_dim = 4, .expand_v = 1.5},
                                 Rng(2));
    GatedDeltaNet2 spelled({.hidden_size = 8, .num_heads = HV, .head_dim = 4, .expand_v = 1.5}, Rng(3));
    layers::NamedTensors parameters;
    for (const auto& [name, tensor] : grouped.named_parameters()) {
      const bool of_keys = name.starts_with("q_") || name.starts_with("k_") || name == "f_proj.1.weight" ||
                           name == "b_proj.weight" || name == "A_log" || name == "dt_bias";
      parameters.emplace_back(name, of_keys ? repeated(tensor, H, HV / H) : tensor);
    }
    spelled.set_named_parameters(parameters);
    const Tensor x = random_input({2, 9, 8}, "x", DType::F32);
    expect_close(grouped.forward(ctx, x).y.value(), spelled.forward(ctx, x).y.value(), 1e-6, std::to_string(HV));
  }
}

// Sizes that are no multiple of anything: finite, and steps equal the whole.
TEST(FieldReport, P19_AnyShapeWorks) {
  NoGrad constant;
  Context ctx = Context::serial();
  struct Sizes {
    std::int64_t width, heads, head_dim;
    double expand_v;
    std::int64_t conv_size;
  };
  for (const Sizes& s : {Sizes{8, 1, 1, 1, 1}, Sizes{20, 2, 3, 3, 2}, Sizes{36, 3, 8, 0.5, 3}, Sizes{1, 5, 24, 1, 4},
                         Sizes{8, 7, 48, 2, 8}, Sizes{20, 12, 16, 3, 4}, Sizes{8, 1, 80, 0.5, 4}, Sizes{8, 2, 96, 1, 4},
                         Sizes{8, 1, 256, 0.5, 4}, Sizes{8, 1, 112, 1, 4}}) {
    for (const char* mixer : {"gated_delta_net2", "kimi_delta_attention", "gated_delta_net"}) {
      Config options;
      options.set("num_heads", s.heads);
      options.set("head_dim", s.head_dim);
      options.set("expand_v", s.expand_v);
      options.set("conv_size", s.conv_size);
      const auto layer = layers::find_mixer(mixer).make(s.width, options, Rng(2));
      for (const std::int64_t batch : {1, 3}) {
        const Tensor x = random_input({batch, 5, s.width}, "x", DType::F32);
        const layers::LayerOutput whole = layer->forward(ctx, x);
        const layers::LayerOutput steps = in_pieces(ctx, *layer, x, {}, {1, 1, 1, 1, 1});
        expect_same_bits(steps.y.value(), whole.y.value(), mixer);
        expect_same_bits(steps.state, whole.state, mixer);
        for (const float v : whole.y.value().span<float>()) ASSERT_TRUE(std::isfinite(v)) << mixer << " " << s.head_dim;
      }
    }
  }
}

}  // namespace
}  // namespace stepwell
