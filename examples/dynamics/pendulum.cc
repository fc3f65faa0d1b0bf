// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "examples/dynamics/pendulum.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace dynamics {

using stepwell::Rng;
using stepwell::train::SequenceBatch;

namespace {

Rng own_numbers(std::int64_t seed, std::string_view purpose, std::int64_t number) {
  return Rng(static_cast<std::uint64_t>(seed)).stream(purpose).stream(static_cast<std::uint64_t>(number));
}

struct Track {
  std::vector<State> states;    // length + 1
  std::vector<double> torques;  // length
};

Track draw(const Rng& rng, std::int64_t length) {
  const Rng start = rng.stream("start"), torque = rng.stream("torque"), hold = rng.stream("hold"),
            jolt = rng.stream("jolt");
  Track track;
  State state{start.uniform(0, -std::numbers::pi / 3, std::numbers::pi / 3), start.uniform(1, -3, 3)};
  double u = 0;
  std::int64_t left = 0;
  for (std::int64_t t = 0; t < length; ++t, --left) {
    const auto number = static_cast<std::uint64_t>(t);
    if (left == 0) {
      u = torque.uniform(number, -1, 1);
      left = 5 + static_cast<std::int64_t>(hold.below(number, 26));
    }
    track.states.push_back(state);
    track.torques.push_back(u);
    state = advance(state, u, kJolt * jolt.normal(number));
  }
  track.states.push_back(state);
  return track;
}

}  // namespace

State advance(State state, double torque, double jolt) {
  constexpr int kParts = 4;  // of a step, for the integration
  constexpr double kPart = kStep / kParts;
  state.speed += jolt;
  for (int i = 0; i < kParts; ++i) {
    state.speed += kPart * (-kGravity * std::sin(state.angle) - kFriction * state.speed + kTorque * torque);
    state.angle += kPart * state.speed;
  }
  return state;
}

void measure(const State& state, const Rng& rng, std::uint64_t index, float* out) {
  out[0] = static_cast<float>(std::cos(state.angle) + kMeasurement * rng.normal(index));
  out[1] = static_cast<float>(std::sin(state.angle) + kMeasurement * rng.normal(index + 1));
  out[2] = static_cast<float>(state.speed / kSpeedUnit + kMeasurement * rng.normal(index + 2));
}

SequenceBatch PendulumTask::sample(std::int64_t seed, std::string_view purpose, std::int64_t first, std::int64_t count,
                                   std::int64_t length) const {
  using stepwell::DType;
  using stepwell::Tensor;
  SequenceBatch batch{Tensor::empty({count, length, kTokenWidth}), Tensor::empty({count, length, kStateWidth}),
                      Tensor::full({count, length}, 1, DType::Bool), Tensor::full({count}, -1, DType::I64)};
  float *x = batch.x.data<float>(), *y = batch.target.data<float>();
  for (std::int64_t row = 0; row < count; ++row) {
    const Rng own = own_numbers(seed, purpose, first + row), noise = own.stream("noise");
    const Track track = draw(own, length);
    for (std::int64_t t = 0; t < length; ++t, x += kTokenWidth, y += kStateWidth) {
      const auto at = static_cast<std::size_t>(t);
      measure(track.states[at], noise, 3 * at, x);
      x[kStateWidth] = static_cast<float>(track.torques[at]);
      measure(track.states[at + 1], noise, 3 * (at + 1), y);
    }
  }
  return batch;
}

stepwell::train::Figures PendulumTask::baselines(const SequenceBatch& batch, std::int64_t from) const {
  const std::int64_t length = batch.x.size(1);
  double squares = 0, values = 0;
  for (std::int64_t i = 0; i < batch.x.size(0) * length; ++i) {
    if (i % length < from) continue;
    for (int k = 0; k < kStateWidth; ++k, ++values) {
      const double change = batch.target.at(i * kStateWidth + k) - batch.x.at(i * kTokenWidth + k);
      squares += change * change;
    }
  }
  return {{"persistence", squares / values}};
}

std::vector<State> PendulumTask::states(std::int64_t seed, std::string_view purpose, std::int64_t number,
                                        std::int64_t length) {
  return draw(own_numbers(seed, purpose, number), length).states;
}

}  // namespace dynamics
