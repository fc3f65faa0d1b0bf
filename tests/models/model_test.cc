// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/models/model.h"

#include <cmath>
#include <set>

#include "stepwell/models/forecaster.h"
#include "stepwell/models/stream.h"
#include "stepwell/simd/isa.h"

#include "tests/models/model_case.h"

namespace stepwell {
namespace {

using models::Model;
using models::States;

void expect_same_bits(const States& a, const States& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].count(), b[i].count()) << what;
    for (int f = 0; f < a[i].count(); ++f) {
      EXPECT_TRUE(a[i][f].value().same_bits(b[i][f].value())) << what << ", layer " << i << ", field " << f;
    }
  }
}

std::set<std::string> names_of(const Model& model) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : model.named_parameters()) names.insert(name);
  return names;
}

class EveryModel : public ::testing::TestWithParam<std::string> {
 protected:
  Context ctx = Context::serial();
};
INSTANTIATE_TEST_SUITE_P(Mixers, EveryModel, ::testing::ValuesIn(mixer_names()),
                         [](const auto& info) { return info.param; });

TEST(CausalLM, HasThePublishedNames) {
  const auto lm = small_lm();
  const auto names = names_of(*lm);
  for (const char* name : {"backbone.embeddings.weight", "backbone.layers.0.norm.weight", "backbone.norm_f.weight",
                           "backbone.layers.1.mixer.A_log", "backbone.layers.1.mixer.conv1d.weight"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_FALSE(names.contains("lm_head.weight"));
  EXPECT_TRUE(names_of(*small_lm("mamba", false)).contains("lm_head.weight"));
  EXPECT_TRUE(names_of(*small_forecaster()).contains("in_proj.bias"));
}

TEST_P(EveryModel, ConfigMakesTheSameModelAgain) {
  const auto lm = small_lm(GetParam()), forecaster = small_forecaster(GetParam());
  for (const Model* model : {lm.get(), forecaster.get()}) {
    const auto again = models::make_model(model->config(), Rng(3));
    EXPECT_EQ(again->config(), model->config());
    EXPECT_EQ(again->type(), model->type());
    const auto a = model->named_parameters(), b = again->named_parameters();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].first, b[i].first);
      EXPECT_TRUE(a[i].second.same_bits(b[i].second)) << a[i].first;
    }
  }
}

TEST(Model, RefusesUnknownConfigurations) {
  const Config good = small_lm()->config();
  const auto with = [&](const char* key, Config value) {
    Config c = good;
    c.set_path(key, std::move(value));
    return c;
  };
  EXPECT_NO_THROW(models::make_model(good, Rng(1)));
  EXPECT_THROW(models::make_model(with("type", "causal"), Rng(1)), Error);
  EXPECT_THROW(models::make_model(with("format", "stepwell-model-2"), Rng(1)), Error);
  EXPECT_THROW(models::make_model(with("layer", 2), Rng(1)), Error);
  EXPECT_THROW(models::make_model(with("layers", 0), Rng(1)), Error);
  EXPECT_THROW(models::make_model(with("mixer", "mambo"), Rng(1)), Error);
  EXPECT_THROW(models::make_model(with("mixer_options.d_stat", 2), Rng(1)), Error);
  EXPECT_THROW(models::make_model({}, Rng(1)), Error);
  EXPECT_THROW(models::make_causal_lm({.backbone = {.layers = 0}}, Rng(1)), Error);
}

// The first channels alone are predicted; a stream gives them in their own units.
TEST(Forecaster, PredictsAsManyChannelsAsAsked) {
  models::ForecasterConfig config{
      .backbone = {.width = 6}, .channels = 3, .outputs = 2, .scales = {{1, 2}, {5, 0.5}, {-3, 4}}};
  const auto model = models::make_forecaster(config, Rng(1));
  EXPECT_EQ(model->input_width(), 3);
  EXPECT_EQ(model->output_width(), 2);
  EXPECT_EQ(models::ForecasterConfig::read(model->config()).outputs, 2);
  Context ctx = Context::serial();
  const NoGrad no_grad;
  models::States states;
  const Tensor scaled = Tensor::from<float>(std::vector<float>{0.5f, -1, 2}, {1, 1, 3});
  const Tensor next = model->forward(ctx, scaled, states).value();
  ASSERT_EQ(next.shape(), Shape({1, 1, 2}));
  models::Stream stream(*model, ctx);
  const float token[] = {2, 4.5f, 5};
  float output[] = {NAN, NAN};
  ASSERT_TRUE(stream.step(token, output));
  EXPECT_FLOAT_EQ(output[0], static_cast<float>(1 + 2 * next.at(0)));
  EXPECT_FLOAT_EQ(output[1], static_cast<float>(5 + 0.5 * next.at(1)));
  config.outputs = 4;
  EXPECT_THROW(models::make_forecaster(config, Rng(1)), Error);
  config.outputs = -1;
  EXPECT_THROW(models::make_forecaster(config, Rng(1)), Error);
}

TEST(Forecaster, ItsScalesAreInItsConfiguration) {
  models::ForecasterConfig config{
      .backbone = small_backbone("mamba"), .channels = 2, .scales = {{0.1, 1e-300}, {-7, 2}}};
  const Config written = models::make_forecaster(config, Rng(1))->config();
  EXPECT_EQ(models::ForecasterConfig::read(written).scales, config.scales);
  EXPECT_EQ(small_forecaster()->scales().size(), 2u);
  EXPECT_EQ(small_forecaster()->scales()[1], models::ChannelScale());
  EXPECT_TRUE(small_lm()->scales().empty());
  for (const std::vector<models::ChannelScale>& wrong :
       {std::vector<models::ChannelScale>{{0, 1}}, {{0, 1}, {0, 0}}, {{0, 1}, {0, -1}}, {{0, 1}, {INFINITY, 1}}}) {
    config.scales = wrong;
    EXPECT_THROW(models::make_forecaster(config, Rng(1)), Error);
  }
  Config uneven = written;
  uneven.set("mean", Config::Array{0.5});
  EXPECT_THROW(models::make_model(uneven, Rng(1)), Error);
}

TEST(Model, RefusesWrongInputs) {
  Context ctx = Context::serial();
  const auto lm = small_lm(), forecaster = small_forecaster();
  const auto run = [&](const Model& model, const Tensor& input) {
    States states;
    model.forward(ctx, input, states);
  };
  EXPECT_THROW(run(*lm, Tensor::full({1, 2}, 256, DType::I64)), Error);
  EXPECT_THROW(run(*lm, Tensor::full({1, 2}, -1, DType::I64)), Error);
  EXPECT_THROW(run(*lm, Tensor::zeros({1, 2})), Error);
  EXPECT_THROW(run(*lm, Tensor::zeros({2}, DType::I64)), Error);
  EXPECT_THROW(run(*forecaster, Tensor::zeros({1, 2, 3})), Error);
  EXPECT_THROW(run(*forecaster, Tensor::zeros({1, 2, 2}, DType::F64)), Error);
  States wrong(3);
  EXPECT_THROW(lm->forward(ctx, random_ids(1, 2, "x"), wrong), Error);
}

TEST_P(EveryModel, SplitsBatchAndThreadsKeepEveryBit) {
  NoGrad constant;
  const auto lm = small_lm(GetParam());
  const Tensor ids = random_ids(3, 20, "x");
  States whole;
  const Tensor logits = lm->forward(ctx, ids, whole).value();
  EXPECT_EQ(logits.shape(), Shape({3, 20, 256}));
  States pieces;
  std::int64_t start = 0;
  for (const std::int64_t length : {1, 7, 0, 11, 1}) {
    const Tensor part = lm->forward(ctx, ids.slice(1, start, length), pieces).value();
    EXPECT_TRUE(part.same_bits(logits.slice(1, start, length))) << start;
    start += length;
  }
  expect_same_bits(pieces, whole, "pieces");
  States one;
  EXPECT_TRUE(lm->forward(ctx, ids.slice(0, 1, 1), one).value().same_bits(logits.slice(0, 1, 1)));
  Context parallel = Context::parallel(3);
  States threaded;
  EXPECT_TRUE(lm->forward(parallel, ids, threaded).value().same_bits(logits));
  expect_same_bits(threaded, whole, "threads");
}

TEST_P(EveryModel, PackedSequencesAreSeparate) {
  NoGrad constant;
  const auto lm = small_lm(GetParam());
  const Tensor ids = random_ids(1, 9, "x");
  States packed, first, second;
  const Tensor y = lm->forward(ctx, ids, packed, {{0, 4, 9}, {}}).value();
  EXPECT_TRUE(lm->forward(ctx, ids.slice(1, 0, 4), first).value().same_bits(y.slice(1, 0, 4)));
  EXPECT_TRUE(lm->forward(ctx, ids.slice(1, 4, 5), second).value().same_bits(y.slice(1, 4, 5)));
}

TEST_P(EveryModel, DropoutIsOnlyThereWithItsNumbers) {
  NoGrad constant;
  models::CausalLMConfig config{.backbone = small_backbone(GetParam())};
  const auto plain = models::make_causal_lm(config, Rng(3));
  config.backbone.dropout = 0.5;
  const auto lm = models::make_causal_lm(config, Rng(3));
  const Tensor ids = random_ids(2, 5, "x");
  const auto run = [&](const Model& model, const Rng* rng) {
    States states;
    return model.forward(ctx, ids, states, {}, rng).value();
  };
  const Rng a(1), b(2);
  const Tensor without = run(*lm, nullptr);
  EXPECT_TRUE(without.same_bits(run(*plain, &a)));
  EXPECT_TRUE(run(*lm, &a).same_bits(run(*lm, &a)));
  EXPECT_FALSE(run(*lm, &a).same_bits(run(*lm, &b)));
  EXPECT_FALSE(run(*lm, &a).same_bits(without));
}

// X1 at length: one call, in tokens, in a batch of 8, on 1, 2, 4 threads, on every instruction set with FMA.
TEST(CausalLM, FourThousandTokensOneByOneEqualOneCall) {
  NoGrad constant;
  constexpr std::int64_t kTokens = 4096;
  models::CausalLMConfig config{.backbone = small_backbone("mamba", 16, 4)};
  ASSERT_EQ(config.backbone.mixer_options.find("init")->as_string("init"), "active");
  const auto lm = models::make_causal_lm(config, Rng(3));
  Context ctx = Context::serial();
  lm->prepare(ctx);
  const Tensor ids = random_ids(8, kTokens, "x");
  const Tensor row = ids.slice(0, 5, 1);
  States whole;
  const Tensor logits = lm->forward(ctx, row, whole).value();
  const auto differing_steps = [&](Context& context, std::int64_t tokens) {
    States states;
    std::int64_t differing = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      differing += !lm->forward(context, row.slice(1, t, 1), states).value().same_bits(logits.slice(1, t, 1));
    }
    if (tokens == kTokens) expect_same_bits(states, whole, "one by one");
    return differing;
  };
  EXPECT_EQ(differing_steps(ctx, kTokens), 0);
  for (const int threads : {2, 4}) {
    Context parallel = Context::parallel(threads);
    States states;
    EXPECT_TRUE(lm->forward(parallel, row, states).value().same_bits(logits)) << threads << " threads";
    expect_same_bits(states, whole, "threads");
    EXPECT_EQ(differing_steps(parallel, 64), 0) << threads << " threads";
    States batch;
    const Tensor eight = lm->hidden(parallel, ids, batch).value();
    EXPECT_TRUE(lm->head(parallel, eight.slice(0, 5, 1)).value().same_bits(logits)) << "in a batch of 8";
  }
  const simd::Isa best = simd::current_isa();
  for (const simd::Isa isa : simd::supported_isas()) {
    if (!simd::has_fma(isa) || isa == best) continue;
    simd::set_isa(isa);
    States states;
    EXPECT_TRUE(lm->forward(ctx, row, states).value().same_bits(logits)) << simd::isa_name(isa);
    expect_same_bits(states, whole, std::string(simd::isa_name(isa)));
    EXPECT_EQ(differing_steps(ctx, 64), 0) << simd::isa_name(isa);
  }
  simd::set_isa(best);
}

TEST(CausalLM, ATiedHeadGetsTheSumOfBothGradients) {
  Context ctx = Context::serial();
  const auto tied = small_lm("mamba", true), untied = small_lm("mamba", false);
  layers::NamedTensors values = tied->named_parameters();
  const Tensor embeddings = values.front().second;
  ASSERT_EQ(values.front().first, "backbone.embeddings.weight");
  values.emplace_back("lm_head.weight", embeddings);
  untied->set_named_parameters(values);
  const Tensor ids = random_ids(1, 6, "x"), targets = random_ids(1, 6, "targets").reshape({6});
  const auto gradients_of = [&](Model& model) {
    States states;
    const Variable logits = reshape(ctx, model.forward(ctx, ids, states), {6, 256});
    return backward(ctx, cross_entropy(ctx, logits, targets));
  };
  const Gradients both = gradients_of(*tied), apart = gradients_of(*untied);
  Tensor sum_of_parts;
  for (const layers::Parameter* p : untied->parameters()) {
    if (p->name != "backbone.embeddings.weight" && p->name != "lm_head.weight") continue;
    const Tensor g = apart.of(p->value);
    sum_of_parts = sum_of_parts.defined() ? add(ctx, sum_of_parts, g).value() : g;
  }
  const Tensor g = both.of(tied->parameters().front()->value);
  for (std::int64_t i = 0; i < g.numel(); ++i) ASSERT_NEAR(g.at(i), sum_of_parts.at(i), 1e-7);
}

}  // namespace
}  // namespace stepwell
