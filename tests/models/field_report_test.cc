// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// Field reports that concern models and streams, over every registered mixer.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "stepwell/layers/gated_delta_net.h"

#include "tests/io/temporary_folder.h"
#include "tests/models/model_case.h"
#include "verify/counted_heap.h"

namespace stepwell {
namespace {

using models::Model;
using models::States;
using models::Stream;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class FieldReport : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Model> lm = small_lm(GetParam());
  std::unique_ptr<Model> forecaster = small_forecaster(GetParam());
  Context ctx = Context::serial();
};
INSTANTIATE_TEST_SUITE_P(Mixers, FieldReport, ::testing::ValuesIn(mixer_names()),
                         [](const auto& info) { return info.param; });

// Padding is dropped before the first layer: NaN there reaches neither outputs, states nor gradients.
TEST_P(FieldReport, P24_PaddingIsInert) {
  const Tensor x = random_series({2, 6, 2}, "x"), mask = Tensor::full({2, 6}, 1, DType::Bool);
  for (const std::int64_t pad : {0, 1, 8}) {
    mask.data<bool>()[pad] = false;
    x.reshape({12, 2}).slice(0, pad, 1).fill(kNaN);
  }
  States states;
  const Variable y = forecaster->forward(ctx, x, states, {{}, mask});
  const Variable loss = sum(ctx, y);
  ASSERT_TRUE(std::isfinite(loss.value().at(0)));
  const Gradients gradients = backward(ctx, loss);
  for (const layers::Parameter* parameter : forecaster->parameters()) {
    const Tensor g = gradients.of(parameter->value);
    ASSERT_TRUE(g.defined()) << parameter->name;
    for (const float v : g.span<float>()) ASSERT_TRUE(std::isfinite(v)) << parameter->name;
  }
  States alone;
  const Tensor expected = forecaster->forward(ctx, x.slice(0, 0, 1).slice(1, 2, 4), alone).value();
  EXPECT_TRUE(y.value().slice(0, 0, 1).slice(1, 2, 4).same_bits(expected));
  for (std::size_t i = 0; i < alone.size(); ++i) {
    for (int f = 0; f < alone[i].count(); ++f) {
      EXPECT_TRUE(states[i][f].value().slice(0, 0, 1).same_bits(alone[i][f].value()));
    }
  }
  States ones;
  EXPECT_TRUE(forecaster->forward(ctx, expected, ones, {{}, Tensor::full({1, 4}, 1, DType::Bool)})
                  .value()
                  .same_bits(forecaster->forward(ctx, expected, alone = {}).value()));
}

// A model draws its mixers' first values as the mixers do alone; only what writes to the residual stream is scaled.
TEST_P(FieldReport, P37_AModelKeepsTheInitialValuesOfItsMixers) {
  const layers::MixerRow& row = layers::find_mixer(GetParam());
  const models::BackboneConfig config = small_backbone(GetParam());
  for (std::size_t i = 0; i < lm->mixers().size(); ++i) {
    const Rng rng = Rng(3).stream("backbone").stream("layers." + std::to_string(i) + ".mixer");
    const auto alone = row.make(config.width, config.mixer_options, rng);
    const std::string prefix = "backbone.layers." + std::to_string(i) + ".mixer.";
    const auto in_model = std::as_const(*lm->mixers()[i]).named_parameters();
    for (const auto& [name, value] : alone->named_parameters()) {
      const auto found = std::ranges::find(in_model, prefix + name, [](const auto& named) { return named.first; });
      ASSERT_NE(found, in_model.end()) << name;
      EXPECT_EQ(found->second.same_bits(value), name != row.output_weight) << name;
    }
  }
}

TEST_P(FieldReport, P41_GradientsDoNotDependOnThreads) {
  const Tensor ids = random_ids(3, 17, "x"), targets = random_ids(1, 51, "targets").reshape({51});
  std::vector<Tensor> first;
  for (const int threads : {1, 1, 2, 4}) {
    Context parallel = Context::parallel(threads);
    States states;
    const Variable logits = reshape(parallel, lm->forward(parallel, ids, states), {51, 256});
    const Gradients gradients = backward(parallel, cross_entropy(parallel, logits, targets));
    std::vector<Tensor> all;
    for (const layers::Parameter* parameter : lm->parameters()) all.push_back(gradients.of(parameter->value));
    if (first.empty()) first = all;
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(all[i].same_bits(first[i])) << threads << " threads";
  }
}

// A model knows nothing of earlier streams; interleaved and cancelled ones are each their private run.
TEST_P(FieldReport, P28_StreamsDoNotLeakIntoEachOther) {
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

// Undoing a call of several tokens: a clone is an exact earlier state, as good as never having gone on.
TEST_P(FieldReport, P30_AWholeCallCanBeUndone) {
  Stream stream(*lm, ctx), never(*lm, ctx);
  feed(stream, random_ids(1, 7, "x"));
  feed(never, random_ids(1, 7, "x"));
  const Stream before = stream.clone();
  std::vector<float> output(kVocab);
  stream.prefill(random_ids(1, 40, "mistaken").span<const std::int64_t>(), output);
  EXPECT_EQ(stream.position(), 47);
  stream = before.clone();
  EXPECT_EQ(stream.position(), 7);
  EXPECT_TRUE(same_bits(feed(stream, random_ids(1, 9, "y")), feed(never, random_ids(1, 9, "y"))));
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

TEST_P(FieldReport, P30_ARestoredStreamContinuesWithTheSameBits) {
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

TEST_P(FieldReport, P30_SnapshotsOfOtherModelsAreRefused) {
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

TEST_P(FieldReport, P30_DamagedSnapshotsAreRefusedAndChangeNothing) {
  const auto tiny = models::make_causal_lm({.backbone = small_backbone(GetParam(), 4, 1), .vocab_size = 4}, Rng(3));
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

std::int64_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

// Ends the process: with 0 if the first step did nothing that later ones do not.
[[noreturn]] void step_and_exit(const std::string& mixer) {
  const std::int64_t threads = threads_of_this_process();
  const auto lm = small_lm(mixer);
  Context ctx = Context::serial();
  lm->prepare(ctx);
  Stream stream(*lm, ctx);
  std::vector<float> output(kVocab);
  std::array<std::int64_t, 3> allocations{};
  for (std::int64_t& count : allocations) {
    const std::int64_t before = verify::heap_allocations();
    if (!stream.step(1, output)) std::_Exit(2);
    count = verify::heap_allocations() - before;
  }
  if (allocations != std::array<std::int64_t, 3>{0, 0, 0}) std::_Exit(3);
  std::_Exit(threads_of_this_process() == threads ? 0 : 4);
}

// In a process of its own, where nothing has run before: opening the stream does all the work of a first call.
TEST_P(FieldReport, P50_TheFirstStepOfAColdProcessDoesNoLazyWork) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(step_and_exit(GetParam()), ::testing::ExitedWithCode(0), "");
}

// What a training step holds at once beyond the parameters.
std::int64_t training_memory(std::int64_t width, std::int64_t layers, std::int64_t time) {
  Context ctx = Context::serial();
  const auto lm = models::make_causal_lm({.backbone = {.width = width, .layers = layers}}, Rng(1));
  const Tensor ids = random_ids(1, time, "x"), targets = random_ids(1, time, "y").reshape({time});
  const verify::HeapMeter meter;
  States states;
  const Variable logits = reshape(ctx, lm->forward(ctx, ids, states), {time, kVocab});
  const Gradients gradients = backward(ctx, cross_entropy(ctx, logits, targets));
  return meter.peak();
}

// 16 layers of width 512 on 16 sequences of 512 tokens train in 4 GB. What a layer and a token add is measured at a
// size that takes no time.
TEST(FieldReport, P36_TrainingMemoryIsLinearAndSmall) {
  constexpr std::int64_t kWidth = 512, kFew = 128, kMany = 256;
  const auto one_few = static_cast<double>(training_memory(kWidth, 1, kFew));
  const auto one_many = static_cast<double>(training_memory(kWidth, 1, kMany));
  const auto two_few = static_cast<double>(training_memory(kWidth, 2, kFew));
  const auto two_many = static_cast<double>(training_memory(kWidth, 2, kMany));
  EXPECT_LE(static_cast<double>(training_memory(kWidth, 1, 2 * kMany)), 2.1 * one_many) << "grows faster than tokens";
  const double tokens = 16 * 512, layers = 16, step = kMany - kFew;
  const double layer = two_few - one_few + (two_many - one_many - two_few + one_few) / step * (tokens - kFew);
  const double rest = one_few + (one_many - one_few) / step * (tokens - kFew) - layer;
  EXPECT_LE(rest + layers * layer, 4.0 * (1 << 30)) << layer << " bytes a layer, " << rest << " beside";
}

// A Gated DeltaNet layer with 16 key and 32 value heads of 128 trains on 4,096 tokens in 2 GB, and on 8,192 in no more
// than 2.1 times that. Measured on an eighth of it.
TEST(FieldReport, P36_OneGatedDeltaNetLayerTrainsInTwoGigabytes) {
  constexpr std::int64_t kPart = 8, kWidth = 2048 / kPart;
  const layers::GatedDeltaNet layer(
      {.hidden_size = kWidth, .num_heads = 16 / kPart, .num_v_heads = 32 / kPart, .head_dim = 128, .expand_v = 1},
      Rng(1));
  const auto peak = [&](std::int64_t time) {
    Context ctx = Context::serial(Mode::Fast);
    const Variable x = Variable::leaf(Rng(2).normal({1, time, kWidth}, 0, 1));
    const verify::HeapMeter meter;
    const Gradients gradients = backward(ctx, sum(ctx, layer.forward(ctx, x).y));
    return static_cast<double>(meter.peak());
  };
  const double once = peak(4096);
  EXPECT_LE(once * kPart, 2.0 * (1 << 30));
  EXPECT_LE(peak(8192), 2.1 * once);
}

}  // namespace
}  // namespace stepwell
