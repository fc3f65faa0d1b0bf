// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "stepwell/core/rng.h"

#include "train/sequence_baselines.h"

namespace stepwell::train {

namespace {

constexpr int kLevelCount = 4;
constexpr double kLevels[kLevelCount] = {-0.9, -0.3, 0.3, 0.9};
constexpr int kShortest = 12, kLongest = 32;              // tokens a level lasts, each as likely as the others
constexpr double kHazard = 2.0 / (kShortest + kLongest);  // chance of a jump per token, on average

// Forward algorithm: weights of the levels given all values so far, then a jump with the hazard's probability. Exact
// but for the hazard, which the filter takes as constant.
struct BayesFilter {
  double noise;
  std::array<double, kLevelCount> weight{0.25, 0.25, 0.25, 0.25};

  void next(std::span<const float> x, std::span<double> prediction) {
    std::array<double, kLevelCount> log_weight;
    for (int i = 0; i < kLevelCount; ++i) {
      const double d = (static_cast<double>(x[0]) - kLevels[i]) / noise;
      log_weight[i] = std::log(weight[i]) - 0.5 * d * d;
    }
    const double highest = *std::max_element(log_weight.begin(), log_weight.end());
    double total = 0;
    for (int i = 0; i < kLevelCount; ++i) total += weight[i] = std::exp(log_weight[i] - highest);
    prediction[0] = 0;
    for (int i = 0; i < kLevelCount; ++i) {
      const double here = weight[i] / total;
      weight[i] = here * (1 - kHazard) + (1 - here) * kHazard / (kLevelCount - 1);
      prediction[0] += weight[i] * kLevels[i];
    }
  }
};

// A series that holds one of four levels for a while, then jumps to another, seen through noise.
class Regimes : public SequenceTask {
 public:
  explicit Regimes(const Config& options) {
    ConfigReader reader(options, "regimes");
    noise_ = reader.number("noise", noise_, 1e-3, 10);
    reader.finish();
  }

  std::int64_t input_width() const override { return 1; }
  std::int64_t output_width() const override { return 1; }
  Answer answer() const override { return Answer::Value; }
  Config config() const override { return Config::Object{{"noise", noise_}}; }

  SequenceBatch sample(std::int64_t seed, std::string_view purpose, std::int64_t first, std::int64_t count,
                       std::int64_t length) const override {
    check_sizes(count, length);
    const Rng rng = Rng(static_cast<std::uint64_t>(seed)).stream(purpose);
    std::vector<float> values;
    for (std::int64_t i = first; i < first + count; ++i) {
      const Rng own = rng.stream(static_cast<std::uint64_t>(i));
      const Rng noise = own.stream("noise"), jump = own.stream("jump"), dwell = own.stream("dwell");
      std::uint64_t level = own.stream("level").below(0, kLevelCount), jumps = 0;
      std::int64_t left = 0;
      for (std::int64_t t = 0; t <= length; ++t, --left) {
        if (left == 0) {
          if (t > 0) level = (level + 1 + jump.below(jumps, kLevelCount - 1)) % kLevelCount;
          left = kShortest + static_cast<std::int64_t>(dwell.below(jumps++, kLongest - kShortest + 1));
        }
        values.push_back(static_cast<float>(kLevels[level] + noise_ * noise.normal(static_cast<std::uint64_t>(t))));
      }
    }
    return series_batch(values, count, length, 1);
  }

  Figures baselines(const SequenceBatch& batch, std::int64_t from) const override {
    const double bayes = prediction_error(batch, from, [this] { return BayesFilter{noise_}; });
    return {{"persistence", persistence(batch, from)},
            {"best_exponential_average", best_exponential_average(batch, from)},
            {"bayes_filter", bayes}};
  }

 private:
  double noise_ = 0.2;  // standard deviation
};

}  // namespace

std::unique_ptr<SequenceTask> make_regimes(const Config& options) { return std::make_unique<Regimes>(options); }

}  // namespace stepwell::train
