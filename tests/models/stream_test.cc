// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/models/stream.h"

#include <cstring>
#include <fstream>
#include <limits>
#include <vector>

#include "tests/io/temporary_folder.h"
#include "tests/models/model_case.h"

namespace stepwell {
namespace {

using models::Stream;

constexpr std::int64_t kVocab = 256;

class EveryStream : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<models::Model> lm = small_lm(GetParam());
  std::unique_ptr<models::Model> forecaster = small_forecaster(GetParam());
  Context ctx = Context::serial();
};
INSTANTIATE_TEST_SUITE_P(Mixers, EveryStream, ::testing::ValuesIn(mixer_names()),
                         [](const auto& info) { return info.param; });

std::vector<float> step(Stream& stream, std::int64_t token) {
  std::vector<float> output(kVocab, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(stream.step(token, output));
  return output;
}

std::vector<float> feed(Stream& stream, const Tensor& ids) {
  std::vector<float> last;
  for (const std::int64_t id : ids.span<std::int64_t>()) last = step(stream, id);
  return last;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

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

// A model knows nothing of earlier streams; interleaved and cancelled ones are each their private run.
TEST_P(EveryStream, P28_StreamsDoNotLeakIntoEachOther) {
  const Tensor a = random_ids(1, 12, "a"), b = random_ids(1, 12, "b");
  Stream private_a(*lm, ctx), private_b(*lm, ctx);
  const auto expected_a = feed(private_a, a), expected_b = feed(private_b, b);
  auto first = std::make_unique<Stream>(*lm, ctx);
  Stream second(*lm, ctx);
  std::vector<float> last_a, last_b;
  for (std::int64_t t = 0; t < 12; ++t) {
    last_a = step(*first, a.data<std::int64_t>()[t]);
    last_b = step(second, b.data<std::int64_t>()[t]);
    Stream cancelled(*lm, ctx);
    step(cancelled, t);
  }
  EXPECT_TRUE(same_bits(last_a, expected_a));
  EXPECT_TRUE(same_bits(last_b, expected_b));
  first.reset();
  Stream again(*lm, ctx);
  EXPECT_TRUE(same_bits(feed(again, a), expected_a));
  again.reset();
  EXPECT_EQ(again.position(), 0);
  EXPECT_TRUE(same_bits(feed(again, b), expected_b));
}

TEST_P(EveryStream, ClonesAreIndependent) {
  Stream stream(*lm, ctx);
  feed(stream, random_ids(1, 10, "x"));
  Stream copy = stream.clone(), reference = stream.clone();
  EXPECT_EQ(copy.position(), 10);
  feed(copy, random_ids(1, 5, "elsewhere"));
  EXPECT_TRUE(same_bits(feed(stream, random_ids(1, 5, "y")), feed(reference, random_ids(1, 5, "y"))));
}

// ------------------------------------------------------------------------------------------------- Saved streams

TEST_P(EveryStream, P30_ARestoredStreamContinuesWithTheSameBits) {
  const TemporaryFolder folder;
  const std::string path = folder.file("stream");
  const Tensor ids = random_ids(1, 2048, "x"), next = random_ids(1, 50, "next");
  Stream stream(*lm, ctx);
  std::vector<float> output(kVocab);
  for (const std::int64_t t : {0, 1, 1866, 2048}) {
    stream.prefill(ids.span<const std::int64_t>().subspan(static_cast<std::size_t>(stream.position()),
                                                          static_cast<std::size_t>(t - stream.position())),
                   output);
    stream.save(path);
    Context other = Context::serial();
    const auto same_model = small_lm(GetParam());
    Stream restored(*same_model, other);
    feed(restored, random_ids(1, 3, "something else"));
    restored.restore(path);
    EXPECT_EQ(restored.position(), t);
    Stream on = stream.clone();
    EXPECT_TRUE(same_bits(feed(restored, next), feed(on, next))) << t;
    // Going back: the snapshot is where it was.
    on.restore(path);
    EXPECT_EQ(on.position(), t);
    on.save(folder.file("again"));
    const auto bytes = [](const std::string& file) {
      std::ifstream in(file, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    EXPECT_EQ(bytes(folder.file("again")), bytes(path)) << "save, restore, save";
  }
}

std::string message_of(Stream& stream, const std::string& path) {
  try {
    stream.restore(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::File);
    return error.what();
  }
  return "no error";
}

TEST_P(EveryStream, P30_SnapshotsOfOtherModelsAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.file("stream");
  Stream stream(*lm, ctx);
  step(stream, 1);
  stream.save(path);

  const auto wider = models::make_causal_lm({.backbone = small_backbone(GetParam(), 20)}, Rng(3));
  const auto deeper = models::make_causal_lm({.backbone = small_backbone(GetParam(), 12, 3)}, Rng(3));
  const auto trained = models::make_causal_lm({.backbone = small_backbone(GetParam())}, Rng(4));
  const auto kind = small_lm(GetParam() == "mamba" ? "linear_attention" : "mamba");
  for (const models::Model* other : {wider.get(), deeper.get(), trained.get(), kind.get(), forecaster.get()}) {
    Stream target(*other, ctx);
    EXPECT_NE(message_of(target, path).find("another model"), std::string::npos) << message_of(target, path);
    EXPECT_EQ(target.position(), 0);
  }
  EXPECT_NE(message_of(stream, folder.file("nothing")), "no error");
}

TEST_P(EveryStream, P30_DamagedSnapshotsAreRefusedAndChangeNothing) {
  const auto tiny = models::make_causal_lm({.backbone = small_backbone(GetParam(), 3, 1), .vocab_size = 4}, Rng(3));
  const TemporaryFolder folder;
  const std::string path = folder.file("stream"), damaged = folder.file("damaged");
  std::vector<float> output(4);
  Stream stream(*tiny, ctx);
  ASSERT_TRUE(stream.step(2, output));
  stream.save(path);
  std::ifstream in(path, std::ios::binary);
  const std::string good(std::istreambuf_iterator<char>(in), {});
  Stream target(*tiny, ctx);
  ASSERT_TRUE(target.step(1, output) && target.step(3, output));
  Stream before = target.clone();
  const auto expect_refused = [&](const std::string& bytes, const std::string& what) {
    std::ofstream(damaged, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    EXPECT_NE(message_of(target, damaged), "no error") << what;
  };
  for (std::size_t n = 0; n < good.size(); n += 1 + n / 16)
    expect_refused(good.substr(0, n), "cut at " + std::to_string(n));
  expect_refused(good + '\0', "one byte more");
  for (std::size_t byte = 0; byte < good.size(); ++byte) {
    std::string bytes = good;
    bytes[byte] = static_cast<char>(bytes[byte] ^ (1 << (byte % 8)));
    expect_refused(bytes, "byte " + std::to_string(byte));
  }
  EXPECT_EQ(target.position(), 2);
  std::vector<float> a(4), b(4);
  ASSERT_TRUE(target.step(0, a) && before.step(0, b));
  EXPECT_TRUE(same_bits(a, b));
}

TEST(Stream, RefusesAModelInDouble) {
  Context ctx = Context::serial();
  const auto lm = small_lm();
  lm->to(DType::F64);
  EXPECT_THROW(Stream(*lm, ctx), Error);
}

}  // namespace
}  // namespace stepwell
