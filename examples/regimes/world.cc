// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "examples/regimes/world.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace regimes {

using stepwell::Rng;
using stepwell::Tensor;

namespace {

// Mean over all predicted values of (prediction − value)²; `predict` sees the values so far through `observe`.
template <class Predictor, class Make>
double mean_square_error(const Sequences& s, Make make) {
  double total = 0;
  for (std::int64_t i = 0; i < s.count; ++i) {
    const auto x = s.sequence(i);
    Predictor predictor = make();
    for (std::size_t t = 0; t + 1 < x.size(); ++t) {
      const double error = predictor.next(x[t]) - static_cast<double>(x[t + 1]);
      total += error * error;
    }
  }
  return total / static_cast<double>(s.count * s.length);
}

struct Persistence {
  double next(double x) const { return x; }
};

struct Exponential {
  double rate, average = 0;
  bool started = false;
  double next(double x) {
    average = started ? average + rate * (x - average) : x;
    started = true;
    return average;
  }
};

// Forward algorithm: weights of the levels given all values so far, then a jump with the hazard's probability.
struct BayesFilter {
  std::array<double, kLevelCount> weight{0.25, 0.25, 0.25, 0.25};
  double next(double x) {
    double total = 0;
    for (int i = 0; i < kLevelCount; ++i) {
      const double d = (x - kLevels[i]) / kNoise;
      weight[i] *= std::exp(-0.5 * d * d);
      total += weight[i];
    }
    double prediction = 0;
    for (int i = 0; i < kLevelCount; ++i) {
      const double here = weight[i] / total;
      weight[i] = here * (1 - kHazard) + (1 - here) * kHazard / (kLevelCount - 1);
      prediction += weight[i] * kLevels[i];
    }
    return prediction;
  }
};

Tensor cut(const Sequences& s, std::int64_t first) {
  Tensor t = Tensor::empty({s.count, s.length, 1});
  for (std::int64_t i = 0; i < s.count; ++i) {
    std::copy_n(s.sequence(i).data() + first, s.length, t.data<float>() + i * s.length);
  }
  return t;
}

}  // namespace

Tensor Sequences::inputs() const { return cut(*this, 0); }
Tensor Sequences::targets() const { return cut(*this, 1); }

Sequences draw(const Rng& rng, std::int64_t first, std::int64_t count, std::int64_t length) {
  Sequences s{count, length, {}};
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
      s.values.push_back(static_cast<float>(kLevels[level] + kNoise * noise.normal(static_cast<std::uint64_t>(t))));
    }
  }
  return s;
}

double persistence(const Sequences& s) {
  return mean_square_error<Persistence>(s, [] { return Persistence{}; });
}

double best_exponential(const Sequences& s) {
  double best = std::numeric_limits<double>::infinity();
  for (int percent = 1; percent < 100; ++percent) {
    best = std::min(best, mean_square_error<Exponential>(s, [percent] { return Exponential{percent / 100.0}; }));
  }
  return best;
}

double bayes_filter(const Sequences& s) {
  return mean_square_error<BayesFilter>(s, [] { return BayesFilter{}; });
}

}  // namespace regimes
