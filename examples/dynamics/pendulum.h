// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stepwell/core/rng.h"
#include "stepwell/train/sequence_task.h"

// A driven pendulum with friction, jolted at random and measured with noise.
namespace dynamics {

inline constexpr double kStep = 0.02;         // seconds from token to token
inline constexpr double kGravity = 9.81;      // over the length, 1/s²
inline constexpr double kFriction = 0.4;      // 1/s
inline constexpr double kTorque = 4;          // largest, 1/s²
inline constexpr double kJolt = 0.02;         // deviation of the speed's random change per step, 1/s
inline constexpr double kMeasurement = 0.03;  // deviation of a measured number
inline constexpr double kSpeedUnit = 4;       // 1/s: speeds are measured in it, so that all numbers are near 1

struct State {
  double angle = 0, speed = 0;  // from hanging down, radians; 1/s
};

// One step under a torque in [−1, 1] (of kTorque), with a change of speed from outside.
State advance(State state, double torque, double jolt);

inline constexpr int kStateWidth = 3, kTokenWidth = 4;

// cos, sin and speed as the model sees them, with noise from three numbers of `rng` starting at `index`.
void measure(const State& state, const stepwell::Rng& rng, std::uint64_t index, float* out);

// Token: the measured state and the torque applied from it; to be predicted: the next measured state. Torques last 5 to
// 30 steps, uniform in [−1, 1]; sequences start anywhere within 60° of hanging down, at any speed up to 3/s.
class PendulumTask : public stepwell::train::SequenceTask {
 public:
  std::int64_t input_width() const override { return kTokenWidth; }
  std::int64_t output_width() const override { return kStateWidth; }
  stepwell::train::Answer answer() const override { return stepwell::train::Answer::Value; }
  stepwell::Config config() const override { return stepwell::Config::Object{}; }
  stepwell::train::SequenceBatch sample(std::int64_t seed, std::string_view purpose, std::int64_t first,
                                        std::int64_t count, std::int64_t length) const override;
  stepwell::train::Figures baselines(const stepwell::train::SequenceBatch& batch, std::int64_t from) const override;

  // The true states behind a sequence: before every token, and after the last.
  static std::vector<State> states(std::int64_t seed, std::string_view purpose, std::int64_t number,
                                   std::int64_t length);
};

}  // namespace dynamics
