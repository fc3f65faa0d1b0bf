// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "stepwell/io/file.h"
#include "stepwell/models/causal_lm.h"
#include "stepwell/models/stream.h"

#include "verify/promises.h"

namespace stepwell::verify {

namespace {

constexpr std::int64_t kVocabulary = 97;
constexpr std::int64_t kLargestFile = std::int64_t{1} << 28;

std::unique_ptr<models::Model> model_of(const Subject& subject) {
  models::CausalLMConfig config;
  config.vocab_size = kVocabulary;
  config.backbone.width = subject.layer->width();
  config.backbone.layers = 2;
  config.backbone.mixer = subject.mixer;
  config.backbone.mixer_options = subject.options;
  return models::make_causal_lm(config, Rng(11).stream("verify model"));
}

// A folder of our own, removed with all its files.
class ScratchFolder {
 public:
  explicit ScratchFolder(const Options& options) {
    const std::filesystem::path base = options.scratch_folder.empty() ? std::filesystem::temp_directory_path()
                                                                      : std::filesystem::path(options.scratch_folder);
    std::string name = (base / "stepwell-verify-XXXXXX").string();
    if (!mkdtemp(name.data())) fail(ErrorCode::File, "verify", "cannot make a folder in " + base.string());
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string operator/(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

void feed(models::Stream& stream, std::int64_t first, std::int64_t count, const Tensor& logits, Tally& tally) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = first + i;
    tally.require(stream.step(at * 31 % kVocabulary, logits.slice(0, at, 1).span<float>()),
                  fmt::format("step {} was refused", at));
  }
}

}  // namespace

void measure_save_and_load(Subject& subject, const Options& options, Tally& tally) {
  const ScratchFolder folder(options);
  const auto model = model_of(subject);
  models::save_model(*model, folder / "first");
  const auto loaded = models::load_model(folder / "first");
  models::save_model(*loaded, folder / "second");
  for (const auto& entry : std::filesystem::directory_iterator(folder / "first")) {
    const std::string name = entry.path().filename().string();
    const std::string again = (std::filesystem::path(folder / "second") / name).string();
    tally.require(io::read_file(entry.path().string(), kLargestFile) == io::read_file(again, kLargestFile),
                  fmt::format("{}: {} differs after save, load, save", subject.variant, name));
  }

  constexpr std::int64_t kBefore = 9, kAfter = 14;
  Context ctx = Context::serial();
  const Tensor plain = Tensor::zeros({kBefore + kAfter, kVocabulary}), resumed = Tensor::zeros(plain.shape());
  models::Stream stream(*model, ctx);
  feed(stream, 0, kBefore, plain, tally);
  stream.save(folder / "stream");
  feed(stream, kBefore, kAfter, plain, tally);
  models::Stream other(*loaded, ctx);
  other.restore(folder / "stream");
  tally.require(other.position() == kBefore, subject.variant + ": a restored stream has another position");
  feed(other, kBefore, kAfter, resumed, tally);
  tally.same_bits(resumed.slice(0, kBefore, kAfter), plain.slice(0, kBefore, kAfter),
                  subject.variant + ": restored stream");
}

void measure_allocations(Subject& subject, const Options& options, Tally& tally) {
  if (!options.heap_allocations) return tally.not_run("this program does not count its heap allocations");
  const auto model = model_of(subject);
  Context ctx = Context::serial();
  models::Stream stream(*model, ctx);
  const Tensor logits = Tensor::zeros({1, kVocabulary});
  const auto output = logits.span<float>();
  constexpr std::int64_t kSteps = 64;
  const std::int64_t before = options.heap_allocations();
  bool accepted = true;
  for (std::int64_t i = 0; i < kSteps; ++i) accepted = stream.step(i % kVocabulary, output) && accepted;
  const std::int64_t made = options.heap_allocations() - before;
  tally.require(accepted, subject.variant + ": a step was refused");
  tally.require(made == 0, fmt::format("{}: {} heap allocations in {} steps", subject.variant, made, kSteps));
}

}  // namespace stepwell::verify
