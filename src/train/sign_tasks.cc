// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "stepwell/core/rng.h"

#include "train/sequence_baselines.h"

namespace stepwell::train {

namespace {

// Numbers of one sequence.
Rng own_numbers(std::int64_t seed, std::string_view purpose, std::int64_t number) {
  return Rng(static_cast<std::uint64_t>(seed)).stream(purpose).stream(static_cast<std::uint64_t>(number));
}

float sign(const Rng& rng, std::int64_t index) {
  return rng.below(static_cast<std::uint64_t>(index), 2) ? 1.0f : -1.0f;
}

// Tasks that are answered by signs, each as likely as the other given all that a guesser knows.
class SignTask : public SequenceTask {
 public:
  Answer answer() const override { return Answer::Sign; }
  Figures baselines(const SequenceBatch&, std::int64_t) const override { return {{"chance", 0.5}}; }
};

// Token [value, flag]: one token of the first quarter has flag 1 and a sign as its value, which is asked for after the
// last token. The others have flag 0 and value 0, or, as distractors, signs of their own.
class Needle : public SignTask {
 public:
  Needle(const Config& options, bool distractors) : distractors_(distractors) {
    ConfigReader(options, distractors ? "needle_distractors" : "needle").finish();
  }
  std::int64_t input_width() const override { return 2; }
  std::int64_t output_width() const override { return 1; }
  Config config() const override { return Config::Object{}; }

  SequenceBatch sample(std::int64_t seed, std::string_view purpose, std::int64_t first, std::int64_t count,
                       std::int64_t length) const override {
    check_sizes(count, length);
    SequenceBatch batch = empty_batch(count, length, 2, 1);
    for (std::int64_t row = 0; row < count; ++row) {
      const Rng own = own_numbers(seed, purpose, first + row), values = own.stream("sign");
      const auto quarter = static_cast<std::uint64_t>(std::max<std::int64_t>(length / 4, 1));
      const auto at = static_cast<std::int64_t>(own.stream("place").below(0, quarter));
      float* x = batch.x.data<float>() + row * length * 2;
      for (std::int64_t t = 0; t < length; ++t) x[2 * t] = distractors_ || t == at ? sign(values, t) : 0;
      x[2 * at + 1] = 1;
      const std::int64_t last = (row + 1) * length - 1;
      batch.target.data<float>()[last] = x[2 * at];
      batch.asked.data<bool>()[last] = true;
      batch.event.data<std::int64_t>()[row] = at;
    }
    return batch;
  }

 private:
  bool distractors_;
};

// Token [value …, flag]: the first half of the sequence are vectors of signs with flag 0, the second half has flag 1
// and asks for them in order. With an odd length the token between the halves is empty.
class Copy : public SignTask {
 public:
  explicit Copy(const Config& options) {
    ConfigReader reader(options, "copy");
    width_ = reader.integer("width", width_, 1, 1 << 10);
    reader.finish();
  }
  std::int64_t input_width() const override { return width_ + 1; }
  std::int64_t output_width() const override { return width_; }
  Config config() const override { return Config::Object{{"width", width_}}; }

  SequenceBatch sample(std::int64_t seed, std::string_view purpose, std::int64_t first, std::int64_t count,
                       std::int64_t length) const override {
    check_sizes(count, length, 2);
    SequenceBatch batch = empty_batch(count, length, width_ + 1, width_);
    const std::int64_t half = length / 2;
    for (std::int64_t row = 0; row < count; ++row) {
      const Rng values = own_numbers(seed, purpose, first + row).stream("sign");
      for (std::int64_t t = 0; t < half; ++t) {
        const std::int64_t said = row * length + t, repeated = (row + 1) * length - half + t;
        for (std::int64_t i = 0; i < width_; ++i) {
          const float value = sign(values, t * width_ + i);
          batch.x.data<float>()[said * (width_ + 1) + i] = value;
          batch.target.data<float>()[repeated * width_ + i] = value;
        }
        batch.x.data<float>()[repeated * (width_ + 1) + width_] = 1;
        batch.asked.data<bool>()[repeated] = true;
      }
    }
    return batch;
  }

 private:
  std::int64_t width_ = 1;  // signs per token
};

// Token [sign]; after every token the product of all signs so far is asked for.
class Parity : public SignTask {
 public:
  explicit Parity(const Config& options) { ConfigReader(options, "parity").finish(); }
  std::int64_t input_width() const override { return 1; }
  std::int64_t output_width() const override { return 1; }
  Config config() const override { return Config::Object{}; }

  SequenceBatch sample(std::int64_t seed, std::string_view purpose, std::int64_t first, std::int64_t count,
                       std::int64_t length) const override {
    check_sizes(count, length);
    SequenceBatch batch = empty_batch(count, length, 1, 1);
    batch.asked.fill(1);
    for (std::int64_t row = 0; row < count; ++row) {
      const Rng values = own_numbers(seed, purpose, first + row).stream("sign");
      float product = 1;
      for (std::int64_t t = 0; t < length; ++t) {
        batch.x.data<float>()[row * length + t] = sign(values, t);
        product *= sign(values, t);
        batch.target.data<float>()[row * length + t] = product;
      }
    }
    return batch;
  }
};

}  // namespace

std::unique_ptr<SequenceTask> make_needle(const Config& options) { return std::make_unique<Needle>(options, false); }
std::unique_ptr<SequenceTask> make_needle_distractors(const Config& options) {
  return std::make_unique<Needle>(options, true);
}
std::unique_ptr<SequenceTask> make_copy(const Config& options) { return std::make_unique<Copy>(options); }
std::unique_ptr<SequenceTask> make_parity(const Config& options) { return std::make_unique<Parity>(options); }

}  // namespace stepwell::train
