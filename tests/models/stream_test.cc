// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/models/stream.h"

#include <limits>
#include <vector>

#include "tests/models/model_case.h"

namespace stepwell {
namespace {

using models::Stream;

class EveryStream : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<models::Model> lm = small_lm(GetParam());
  std::unique_ptr<models::Model> forecaster = small_forecaster(GetParam());
  Context ctx = Context::serial();
};
INSTANTIATE_TEST_SUITE_P(Mixers, EveryStream, ::testing::ValuesIn(mixer_names()),
                         [](const auto& info) { return info.param; });

TEST_P(EveryStream, StepsEqualOneCall) {
  NoGrad constant;
  lm->prepare(ctx);
  const Tensor ids = random_ids(1, 40, "x");
  models::States states;
  const Tensor logits = lm->forward(ctx, ids, states).value();
  Stream stream(*lm, ctx);
  for (std::int64_t t = 0; t < 40; ++t) {
    EXPECT_EQ(stream.position(), t);
    const auto output = step(stream, ids.data<std::int64_t>()[t]);
    EXPECT_TRUE(same_bits(output, logits.slice(1, t, 1).span<float>())) << t;
  }
  Stream series(*forecaster, ctx);
  const Tensor x = random_series({1, 9, 2}, "x");
  states.clear();
  const Tensor y = forecaster->forward(ctx, x, states).value();
  for (std::int64_t t = 0; t < 9; ++t) {
    std::vector<float> output(2);
    ASSERT_TRUE(series.step(x.slice(1, t, 1).span<const float>(), output));
    EXPECT_TRUE(same_bits(output, y.slice(1, t, 1).span<float>())) << t;
  }
}

// A series' own units go in and come out; the model sees them scaled.
TEST_P(EveryStream, ValuesOfASeriesAreInItsOwnUnits) {
  const std::vector<models::ChannelScale> scales = {{100, 4}, {-2, 0.25}};
  const auto model =
      models::make_forecaster({.backbone = small_backbone(GetParam()), .channels = 2, .scales = scales}, Rng(3));
  Stream plain(*forecaster, ctx), series(*model, ctx), prefilled(*model, ctx);
  const Tensor x = random_series({9, 2}, "x"), own = x.clone();
  for (std::size_t i = 0; i < 18; ++i) {
    own.span<float>()[i] = static_cast<float>(scales[i % 2].mean + scales[i % 2].deviation * own.span<float>()[i]);
  }
  std::vector<float> expected(2), output(2), last(2);
  for (std::int64_t t = 0; t < 9; ++t) {
    ASSERT_TRUE(plain.step(x.slice(0, t, 1).span<const float>(), expected));
    ASSERT_TRUE(series.step(own.slice(0, t, 1).span<const float>(), output));
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR((output[i] - scales[i].mean) / scales[i].deviation, expected[i], 1e-4);
    }
  }
  prefilled.prefill(own.span<const float>(), last);
  EXPECT_TRUE(same_bits(last, output));
  Stream copy = series.clone();
  ASSERT_TRUE(copy.step(last, expected) && prefilled.step(last, output));
  EXPECT_TRUE(same_bits(output, expected));
}

TEST_P(EveryStream, PrefillEqualsSteps) {
  const Tensor ids = random_ids(1, 1100, "x");
  Stream stepped(*lm, ctx), fed(*lm, ctx);
  const auto expected = feed(stepped, ids);
  std::vector<float> output(kVocab, 7);
  fed.prefill(std::span<const std::int64_t>(), output);
  EXPECT_EQ(output[0], 7) << "without tokens there is nothing to say";
  fed.prefill(ids.span<const std::int64_t>().first(3), output);
  fed.prefill(ids.span<const std::int64_t>().subspan(3), output);
  EXPECT_EQ(fed.position(), 1100);
  EXPECT_TRUE(same_bits(output, expected));
  EXPECT_TRUE(same_bits(step(fed, 1), step(stepped, 1)));
  const Tensor x = random_series({1, 20, 2}, "x");
  Stream a(*forecaster, ctx), b(*forecaster, ctx);
  std::vector<float> one(2), all(2);
  for (std::int64_t t = 0; t < 20; ++t) ASSERT_TRUE(a.step(x.slice(1, t, 1).span<const float>(), one));
  b.prefill(x.span<const float>(), all);
  EXPECT_TRUE(same_bits(one, all));
}

TEST_P(EveryStream, RefusedInputsChangeNothing) {
  Stream stream(*lm, ctx), untouched(*lm, ctx), series(*forecaster, ctx);
  std::vector<float> logits(kVocab, 7), few(3), two(2);
  EXPECT_FALSE(stream.step(256, logits));
  EXPECT_FALSE(stream.step(-1, logits));
  EXPECT_FALSE(stream.step(3, few));
  EXPECT_FALSE(stream.step(two, logits)) << "a vector for a language model";
  EXPECT_FALSE(series.step(3, two)) << "a token for a forecaster";
  EXPECT_FALSE(series.step(few, two));
  EXPECT_FALSE(series.step(two, few));
  EXPECT_FALSE(series.step(std::vector<float>(4), two)) << "two vectors are not one";
  const std::vector<std::int64_t> bad = {1, 2, 256};
  EXPECT_THROW(stream.prefill(bad, logits), Error);
  EXPECT_THROW(series.prefill(few, two), Error);
  EXPECT_EQ(stream.position(), 0);
  EXPECT_EQ(logits[0], 7);
  EXPECT_TRUE(same_bits(step(stream, 5), step(untouched, 5)));
}

TEST_P(EveryStream, ClonesAreIndependent) {
  Stream stream(*lm, ctx);
  feed(stream, random_ids(1, 10, "x"));
  Stream copy = stream.clone(), reference = stream.clone();
  EXPECT_EQ(copy.position(), 10);
  feed(copy, random_ids(1, 5, "elsewhere"));
  EXPECT_TRUE(same_bits(feed(stream, random_ids(1, 5, "y")), feed(reference, random_ids(1, 5, "y"))));
}

TEST(Stream, RefusesAModelInDouble) {
  Context ctx = Context::serial();
  const auto lm = small_lm();
  lm->to(DType::F64);
  EXPECT_THROW(Stream(*lm, ctx), Error);
}

}  // namespace
}  // namespace stepwell
