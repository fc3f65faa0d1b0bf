// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/sequence_task.h"

#include <cmath>
#include <limits>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"
#include "stepwell/io/blake3.h"

namespace stepwell::train {

static void PrintTo(const SequenceTaskRow& row, std::ostream* out) { *out << row.name; }  // found by GoogleTest

namespace {

constexpr std::int64_t kSeed = 7;

double figure(const SequenceTask& task, const SequenceBatch& batch, const std::string& name, std::int64_t from = 0) {
  for (const auto& [found, value] : task.baselines(batch, from)) {
    if (found == name) return value;
  }
  ADD_FAILURE() << "no baseline " << name;
  return std::nan("");
}

class EveryTask : public testing::TestWithParam<SequenceTaskRow> {
 protected:
  std::unique_ptr<SequenceTask> task() const { return make_sequence_task(GetParam().name); }
};

INSTANTIATE_TEST_SUITE_P(SequenceTasks, EveryTask, testing::ValuesIn(sequence_tasks().begin(), sequence_tasks().end()),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_P(EveryTask, HasTheShapesItNames) {
  for (const std::int64_t length : {2, 3, 5, 17, 64}) {
    for (const std::int64_t count : {0, 1, 3}) {
      const SequenceBatch batch = task()->sample(kSeed, "train", 0, count, length);
      EXPECT_EQ(batch.x.shape(), Shape({count, length, task()->input_width()}));
      EXPECT_EQ(batch.target.shape(), Shape({count, length, task()->output_width()}));
      EXPECT_EQ(batch.asked.shape(), Shape({count, length}));
      EXPECT_EQ(batch.event.shape(), Shape({count}));
      for (std::int64_t i = 0; i < batch.x.numel(); ++i) EXPECT_TRUE(std::isfinite(batch.x.at(i)));
    }
  }
  EXPECT_LE(task()->output_width(), task()->input_width());
  EXPECT_THROW(task()->sample(kSeed, "train", 0, 1, 0), Error);
  EXPECT_THROW(task()->sample(kSeed, "train", 0, 1, -9), Error);
  EXPECT_THROW(task()->sample(kSeed, "train", 0, -1, 8), Error);
}

// A sequence depends on its seed, its set, its number and its length, and not on what it was asked for with.
TEST_P(EveryTask, NumbersSequences) {
  const auto whole = task()->sample(kSeed, "train", 0, 9, 24);
  const auto part = task()->sample(kSeed, "train", 4, 3, 24);
  EXPECT_TRUE(whole.x.slice(0, 4, 3).same_bits(part.x));
  EXPECT_TRUE(whole.target.slice(0, 4, 3).same_bits(part.target));
  EXPECT_TRUE(whole.asked.slice(0, 4, 3).same_bits(part.asked));
  EXPECT_TRUE(whole.event.slice(0, 4, 3).same_bits(part.event));
  EXPECT_FALSE(whole.x.same_bits(task()->sample(kSeed, "held-out", 0, 9, 24).x));
  EXPECT_FALSE(whole.x.same_bits(task()->sample(kSeed + 1, "train", 0, 9, 24).x));
  EXPECT_FALSE(whole.x.slice(0, 0, 3).same_bits(whole.x.slice(0, 3, 3)));
}

// The same on every machine: digests of one set of each task.
TEST_P(EveryTask, DrawsTheSameNumbersEverywhere) {
  static const std::map<std::string_view, std::string> kDigests = {
      {"regimes", "2d020fb5165a9032"}, {"oscillators", "91a1944d0215df54"},
      {"needle", "fc91e61d13bf94c9"},  {"needle_distractors", "cfd14dd23c9b1231"},
      {"copy", "724ef8a9589d1c4b"},    {"parity", "d756ac0754840785"}};
  const SequenceBatch batch = task()->sample(kSeed, "train", 3, 5, 33);
  io::Blake3 hash;
  hash.update(std::as_bytes(batch.x.span<float>()));
  hash.update(std::as_bytes(batch.target.span<float>()));
  hash.update(std::as_bytes(batch.event.span<std::int64_t>()));
  EXPECT_EQ(io::to_hex(hash.digest()).substr(0, 16), kDigests.at(GetParam().name));
}

TEST_P(EveryTask, TakesItsOwnConfigurationAndNoOther) {
  const Config config = task()->config();
  const auto again = make_sequence_task(GetParam().name, config);
  EXPECT_EQ(again->config(), config);
  EXPECT_TRUE(again->sample(kSeed, "train", 0, 2, 9).x.same_bits(task()->sample(kSeed, "train", 0, 2, 9).x));
  EXPECT_THROW(make_sequence_task(GetParam().name, Config::Object{{"nois", 1}}), Error);
}

TEST(SequenceTask, NamesTheNearest) {
  try {
    make_sequence_task("neddle");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Config);
    EXPECT_NE(std::string(error.what()).find("did you mean needle?"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("parity"), std::string::npos) << error.what();
  }
}

// Errors of the simple predictors, written out.
TEST(SequenceTask, SimplePredictorsMatchPlainFormulas) {
  const auto task = make_sequence_task("oscillators");
  const std::int64_t count = 3, length = 13, width = 3, from = 4;
  const SequenceBatch batch = task->sample(kSeed, "train", 0, count, length);
  const auto x = batch.x.view<float, 3>();
  const auto y = batch.target.view<float, 3>();
  double persistence = 0, best = std::numeric_limits<double>::infinity();
  for (std::int64_t b = 0; b < count; ++b) {
    for (std::int64_t t = from; t < length; ++t) {
      for (std::int64_t i = 0; i < width; ++i) persistence += std::pow(x(b, t, i) - double{y(b, t, i)}, 2);
    }
  }
  for (int percent = 1; percent < 100; ++percent) {
    const double rate = percent / 100.0;
    double squares = 0;
    for (std::int64_t b = 0; b < count; ++b) {
      for (std::int64_t i = 0; i < width; ++i) {
        for (std::int64_t t = from; t < length; ++t) {
          double average = std::pow(1 - rate, t) * x(b, 0, i);
          for (std::int64_t s = 1; s <= t; ++s) average += rate * std::pow(1 - rate, t - s) * x(b, s, i);
          squares += std::pow(average - double{y(b, t, i)}, 2);
        }
      }
    }
    best = std::min(best, squares);
  }
  const double values = count * (length - from) * width;
  EXPECT_NEAR(figure(*task, batch, "persistence", from), persistence / values, 1e-12);
  EXPECT_NEAR(figure(*task, batch, "best_exponential_average", from), best / values, 1e-12);
  EXPECT_NEAR(score(*task, batch, batch.x, from), persistence / values, 1e-12);
}

// The forward algorithm gives what adding up all 4^T paths of levels gives.
TEST(SequenceTask, RegimesFilterAddsUpAllPaths) {
  const auto task = make_sequence_task("regimes");
  const double levels[] = {-0.9, -0.3, 0.3, 0.9}, hazard = 1.0 / 22;
  const SequenceBatch batch = task->sample(kSeed, "train", 2, 1, 6);
  const float *x = batch.x.data<float>(), *y = batch.target.data<float>();
  double squares = 0;
  for (int t = 0; t < 6; ++t) {
    double evidence = 0, mean = 0;
    for (int path = 0; path < (1 << (2 * (t + 1))); ++path) {
      double weight = 0.25;
      for (int s = 0; s <= t; ++s) {
        const int level = (path >> (2 * s)) & 3, before = s ? (path >> (2 * (s - 1))) & 3 : level;
        if (s) weight *= level == before ? 1 - hazard : hazard / 3;
        weight *= std::exp(-0.5 * std::pow((x[s] - levels[level]) / 0.2, 2));
      }
      const double here = levels[(path >> (2 * t)) & 3], others = (0 - here) / 3;  // the levels add up to 0
      evidence += weight;
      mean += weight * ((1 - hazard) * here + hazard * others);
    }
    squares += std::pow(mean / evidence - double{y[t]}, 2);
  }
  EXPECT_NEAR(figure(*task, batch, "bayes_filter"), squares / 6, 1e-9);
}

// The Kalman filter gives what the normal distribution of the whole past gives: a linear system in all values so far,
// with covariances v rᵏ cos(kω), and the noise on the diagonal.
TEST(SequenceTask, OscillatorFilterIsTheConditionalMean) {
  const auto task = make_sequence_task("oscillators");
  const std::int64_t length = 12;
  const SequenceBatch batch = task->sample(kSeed, "train", 5, 1, length);
  const auto x = batch.x.view<float, 3>();
  const auto y = batch.target.view<float, 3>();
  const double tangents[] = {0.2, 0.3, 0.4};
  double squares = 0;
  for (int i = 0; i < 3; ++i) {
    const double angle = 2 * std::atan(tangents[i]);
    const auto covariance = [&](std::int64_t lag) {
      return 0.15 * std::pow(0.98, std::abs(lag)) * std::cos(angle * static_cast<double>(lag)) + (lag ? 0 : 0.01);
    };
    for (std::int64_t t = 0; t < length; ++t) {
      const std::int64_t n = t + 1;  // solve C a = x by elimination, predict Σ a_s c(t + 1 − s)
      std::vector<std::vector<double>> rows(n, std::vector<double>(n + 1));
      for (std::int64_t r = 0; r < n; ++r) {
        for (std::int64_t c = 0; c < n; ++c) rows[r][c] = covariance(r - c);
        rows[r][n] = x(0, r, i);
      }
      for (std::int64_t p = 0; p < n; ++p) {
        for (std::int64_t r = 0; r < n; ++r) {
          if (r == p) continue;
          const double factor = rows[r][p] / rows[p][p];
          for (std::int64_t c = p; c <= n; ++c) rows[r][c] -= factor * rows[p][c];
        }
      }
      double prediction = 0;
      for (std::int64_t s = 0; s < n; ++s) prediction += rows[s][n] / rows[s][s] * covariance(t + 1 - s);
      squares += std::pow(prediction - double{y(0, t, i)}, 2);
    }
  }
  EXPECT_NEAR(figure(*task, batch, "bayes_filter"), squares / (3 * length), 1e-6);
}

// On its own data the filter beats every simple predictor, and a filter for other noise.
TEST(SequenceTask, BayesFilterIsBestOnItsOwnData) {
  const auto regimes = make_sequence_task("regimes");
  const SequenceBatch levels = regimes->sample(kSeed, "held-out", 0, 512, 64);
  const double bayes = figure(*regimes, levels, "bayes_filter");
  // Twice the noise's variance, and 2.45 jumps of mean square 1.2 in 64 tokens.
  EXPECT_NEAR(figure(*regimes, levels, "persistence"), 0.08 + 2.45 * 1.2 / 64, 0.004);
  EXPECT_LT(figure(*regimes, levels, "best_exponential_average"), 0.116);
  EXPECT_LT(bayes, 0.094);
  const auto oscillators = make_sequence_task("oscillators");
  const SequenceBatch waves = oscillators->sample(kSeed, "held-out", 0, 256, 100);
  EXPECT_NEAR(figure(*oscillators, waves, "persistence"), 0.0768, 0.002);
  EXPECT_NEAR(figure(*oscillators, waves, "bayes_filter", 50), 0.0262, 0.001);
  EXPECT_GT(figure(*oscillators, waves, "best_exponential_average"), 0.05);
  for (const double wrong : {0.5, 2.0}) {
    const auto other = make_sequence_task("regimes", Config::Object{{"noise", 0.2 * wrong}});
    EXPECT_GT(figure(*other, levels, "bayes_filter"), 1.01 * bayes);
    const auto detuned = make_sequence_task("oscillators", Config::Object{{"noise", 0.1 * wrong}});
    EXPECT_GT(figure(*detuned, waves, "bayes_filter"), 1.01 * figure(*oscillators, waves, "bayes_filter"));
  }
}

TEST(SequenceTask, NeedleAsksForTheFlaggedSign) {
  for (const char* name : {"needle", "needle_distractors"}) {
    const SequenceBatch batch = make_sequence_task(name)->sample(kSeed, "train", 0, 200, 40);
    const auto x = batch.x.view<float, 3>();
    int plus = 0;
    std::vector<int> places(10);
    for (std::int64_t b = 0; b < 200; ++b) {
      const std::int64_t at = batch.event.data<std::int64_t>()[b];
      ASSERT_TRUE(at >= 0 && at < 10) << "the first quarter";
      ++places[static_cast<std::size_t>(at)];
      for (std::int64_t t = 0; t < 40; ++t) {
        EXPECT_EQ(x(b, t, 1), t == at ? 1 : 0);
        EXPECT_EQ(std::fabs(x(b, t, 0)), t == at || std::string_view(name) != "needle" ? 1 : 0);
        EXPECT_EQ(batch.asked.data<bool>()[b * 40 + t], t == 39);
      }
      EXPECT_EQ(batch.target.data<float>()[b * 40 + 39], x(b, at, 0));
      plus += x(b, at, 0) > 0;
    }
    EXPECT_NEAR(plus, 100, 30);
    for (const int times : places) EXPECT_NEAR(times, 20, 18);
  }
}

TEST(SequenceTask, CopyAsksForTheFirstHalfInOrder) {
  const auto task = make_sequence_task("copy", Config::Object{{"width", 3}});
  for (const std::int64_t length : {10, 11}) {
    const SequenceBatch batch = task->sample(kSeed, "train", 0, 2, length);
    const auto x = batch.x.view<float, 3>();
    const auto y = batch.target.view<float, 3>();
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t t = 0; t < length; ++t) {
        const bool second = t >= length - 5;
        EXPECT_EQ(batch.asked.data<bool>()[b * length + t], second);
        EXPECT_EQ(x(b, t, 3), second ? 1 : 0);
        for (std::int64_t i = 0; i < 3; ++i) {
          EXPECT_EQ(std::fabs(x(b, t, i)), t < 5 ? 1 : 0);
          EXPECT_EQ(y(b, t, i), second ? x(b, t - (length - 5), i) : 0);
        }
      }
    }
  }
  EXPECT_THROW(task->sample(kSeed, "train", 0, 1, 1), Error);
}

TEST(SequenceTask, ParityIsTheProductSoFar) {
  const SequenceBatch batch = make_sequence_task("parity")->sample(kSeed, "train", 0, 3, 50);
  for (std::int64_t b = 0; b < 3; ++b) {
    float product = 1;
    for (std::int64_t t = 0; t < 50; ++t) {
      product *= batch.x.data<float>()[b * 50 + t];
      EXPECT_EQ(batch.target.data<float>()[b * 50 + t], product);
      EXPECT_TRUE(batch.asked.data<bool>()[b * 50 + t]);
    }
  }
}

TEST(SequenceTask, ScoresWhatIsAsked) {
  const auto task = make_sequence_task("copy");
  const SequenceBatch batch = task->sample(kSeed, "train", 0, 2, 8);
  Tensor prediction = batch.target.clone();
  EXPECT_EQ(score(*task, batch, prediction), 1);
  for (std::int64_t t = 0; t < 4; ++t) prediction.data<float>()[t] = std::nanf("");  // not asked
  EXPECT_EQ(score(*task, batch, prediction), 1);
  prediction.data<float>()[4] = 0;
  prediction.data<float>()[5] = std::nanf("");
  prediction.data<float>()[6] *= -1;
  EXPECT_EQ(score(*task, batch, prediction), 5.0 / 8);
  EXPECT_EQ(score(*task, batch, prediction, 7), 1);
  EXPECT_THROW(score(*task, batch, prediction, 8), Error);
  EXPECT_THROW(score(*task, batch, batch.x), Error);
  EXPECT_EQ(task->baselines(batch), (Figures{{"chance", 0.5}}));
}

}  // namespace
}  // namespace stepwell::train
