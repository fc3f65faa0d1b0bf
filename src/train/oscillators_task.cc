// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <vector>

#include "stepwell/core/rng.h"

#include "train/sequence_baselines.h"

namespace stepwell::train {

namespace {

constexpr int kCount = 3;
constexpr double kTangents[kCount] = {0.2, 0.3, 0.4};  // of half the angle per token: periods of 15.9, 10.8, 8.3 tokens
constexpr double kDamping = 0.98;                      // of the amplitude per token
constexpr double kVariance = 0.15;                     // of an oscillator's position
constexpr double kDrive = kVariance * (1 - kDamping * kDamping);  // variance of the kicks that keep it there

// One token of rotation and damping. Cosine and sine come from the tangent of half the angle by correctly rounded
// operations alone, so that the sequences are the same on every machine.
struct Turn {
  double cosine, sine;
  explicit Turn(double tangent)
      : cosine(kDamping * (1 - tangent * tangent) / (1 + tangent * tangent)),
        sine(kDamping * 2 * tangent / (1 + tangent * tangent)) {}
};

using Point = std::array<double, 2>;  // position and what leads to it a quarter of a period later

Point turn(const Turn& by, const Point& z) {
  return {by.cosine * z[0] - by.sine * z[1], by.sine * z[0] + by.cosine * z[1]};
}

// The Kalman filter of one oscillator: the mean of the next value given all so far, exactly.
class KalmanFilter {
 public:
  KalmanFilter(double tangent, double noise) : turn_(tangent), noise_variance_(noise * noise) {}

  double next(double x) {
    const double innovation = x - mean_[0], variance = a_ + noise_variance_;
    const double gain0 = a_ / variance, gain1 = b_ / variance;
    mean_ = turn(turn_, {mean_[0] + gain0 * innovation, mean_[1] + gain1 * innovation});
    const double a = a_ - gain0 * a_, b = b_ - gain0 * b_, d = d_ - gain1 * b_;
    const double c = turn_.cosine, s = turn_.sine;
    a_ = c * c * a - 2 * c * s * b + s * s * d + kDrive;
    b_ = c * s * a + (c * c - s * s) * b - c * s * d;
    d_ = s * s * a + 2 * c * s * b + c * c * d + kDrive;
    return mean_[0];
  }

 private:
  Turn turn_;
  double noise_variance_;
  Point mean_{0, 0};
  double a_ = kVariance, b_ = 0, d_ = kVariance;  // covariance [[a, b], [b, d]] before the next value is seen
};

struct BayesFilter {
  std::array<KalmanFilter, kCount> filters;
  explicit BayesFilter(double noise)
      : filters{KalmanFilter(kTangents[0], noise), KalmanFilter(kTangents[1], noise),
                KalmanFilter(kTangents[2], noise)} {}

  void next(std::span<const float> x, std::span<double> prediction) {
    for (int i = 0; i < kCount; ++i) prediction[i] = filters[i].next(static_cast<double>(x[i]));
  }
};

// Three damped oscillators of fixed frequencies, each kicked at random so that amplitude and phase wander around a
// steady size; tokens are their positions seen through noise. Persistence has a mean square error of 2·(kVariance·(1 −
// kDamping·cos) + noise²), 0.077 on average over the three with noise 0.1; the Kalman filter has 0.026.
class Oscillators : public SequenceTask {
 public:
  explicit Oscillators(const Config& options) {
    ConfigReader reader(options, "oscillators");
    noise_ = reader.number("noise", noise_, 1e-3, 10);
    reader.finish();
  }

  std::int64_t input_width() const override { return kCount; }
  std::int64_t output_width() const override { return kCount; }
  Answer answer() const override { return Answer::Value; }
  Config config() const override { return Config::Object{{"noise", noise_}}; }

  SequenceBatch sample(std::int64_t seed, std::string_view purpose, std::int64_t first, std::int64_t count,
                       std::int64_t length) const override {
    check_sizes(count, length);
    const Rng rng = Rng(static_cast<std::uint64_t>(seed)).stream(purpose);
    std::vector<float> values(static_cast<std::size_t>(count * (length + 1) * kCount));
    for (std::int64_t row = 0; row < count; ++row) {
      const Rng own = rng.stream(static_cast<std::uint64_t>(first + row));
      for (int i = 0; i < kCount; ++i) {
        const Rng kick = own.stream("kick").stream(static_cast<std::uint64_t>(i));
        const Rng noise = own.stream("noise").stream(static_cast<std::uint64_t>(i));
        const Turn by(kTangents[i]);
        const double start = std::sqrt(kVariance), drive = std::sqrt(kDrive);
        Point z{start * kick.normal(0), start * kick.normal(1)};
        for (std::int64_t t = 0; t <= length; ++t) {
          const auto number = static_cast<std::uint64_t>(t);
          values[static_cast<std::size_t>((row * (length + 1) + t) * kCount + i)] =
              static_cast<float>(z[0] + noise_ * noise.normal(number));
          z = turn(by, z);
          z[0] += drive * kick.normal(2 * number + 2);
          z[1] += drive * kick.normal(2 * number + 3);
        }
      }
    }
    return series_batch(values, count, length, kCount);
  }

  Figures baselines(const SequenceBatch& batch, std::int64_t from) const override {
    const double bayes = prediction_error(batch, from, [this] { return BayesFilter(noise_); });
    return {{"persistence", persistence(batch, from)},
            {"best_exponential_average", best_exponential_average(batch, from)},
            {"bayes_filter", bayes}};
  }

 private:
  double noise_ = 0.1;  // standard deviation
};

}  // namespace

std::unique_ptr<SequenceTask> make_oscillators(const Config& options) { return std::make_unique<Oscillators>(options); }

}  // namespace stepwell::train
