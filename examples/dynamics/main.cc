// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// A model of a machine, to plan and control with: measured state and action in, next state out. One small gated cell
// learns a pendulum with friction under noise, by imitation of a teacher's memory and, for comparison, by
// back-propagation through time; then 500 steps on held-out sequences, of which the cell sees the actions alone; then a
// control loop that steps the cell a thousand times a second. Prints tables with marks; exit status 1 if one is missed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <numbers>
#include <string>
#include <thread>
#include <vector>

#include "stepwell/core/context.h"
#include "stepwell/memory/distillation.h"

#include "examples/dynamics/pendulum.h"

namespace {

using namespace stepwell;
using dynamics::kStateWidth;
using dynamics::kTokenWidth;
using dynamics::State;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSeed = 1, kSeen = 50, kBlind = 500, kHeldOut = 64;

bool all_passed = true;

void mark(const char* what, double value, double limit, const char* unit) {
  const bool passed = value <= limit;
  std::printf("  %-58s %8.4g%s   <= %g%s   %s\n", what, value, unit, limit, unit, passed ? "PASS" : "FAIL");
  all_passed = all_passed && passed;
}

memory::DistillRecipe recipe(memory::DistillMode mode) {
  memory::DistillRecipe r;
  r.task = "pendulum";
  r.length = 64;
  r.mode = mode;
  r.seed = kSeed;
  r.cell = "gated";
  r.memory_width = 32;
  r.cell_options.set("bias", true);
  r.teacher.set("window", 16);
  r.teacher.set("recency", true);
  r.teacher.set("bound", "tanh");
  r.teacher.set("embed_width", 32);
  r.steps = mode == memory::DistillMode::Bptt ? 1500 : 6000;
  r.schedule.peak = 4e-3;
  r.schedule.decay = train::Decay::Cosine;
  r.schedule.steps = r.steps;
  r.imitation.rounds = 10;
  r.imitation.validation_sequences = 32;
  return r;
}

struct Trained {
  std::unique_ptr<memory::Distillation> run;
  double seconds = 0;
};

Trained train_cell(Context& ctx, memory::DistillMode mode, const char* name) {
  Trained trained{
      std::make_unique<memory::Distillation>(ctx, recipe(mode), std::make_unique<dynamics::PendulumTask>())};
  const auto start = Clock::now();
  while (!trained.run->done()) {
    const memory::DistillStep step = trained.run->advance();
    if (step.step % 100 == 0) {
      std::fprintf(stderr, "\r%-12s %-10s step %5lld, loss %.5f ", name, std::string(step.phase).c_str(),
                   static_cast<long long>(step.step), step.loss);
    }
  }
  std::fprintf(stderr, "\r%-60s\r", "");
  trained.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return trained;
}

double angle_of(const float* state) { return std::atan2(static_cast<double>(state[1]), static_cast<double>(state[0])); }

// Root mean square differences of angles in degrees.
class AngleError {
 public:
  void add(double a, double b) {
    const double difference = std::remainder(a - b, 2 * std::numbers::pi);
    squares_ += difference * difference;
    ++count_;
  }
  double degrees() const { return std::sqrt(squares_ / count_) * 180 / std::numbers::pi; }

 private:
  double squares_ = 0;
  int count_ = 0;
};

// Angle errors 1 … kBlind steps after the last measurement, on held-out sequences.
using Errors = std::vector<AngleError>;

// The cell sees kSeen tokens, then its own predictions and the true actions.
Errors roll_out(Context& ctx, const memory::MemoryUpdater& cell, const train::SequenceBatch& batch,
                const std::vector<std::vector<State>>& truth) {
  Errors errors(kBlind);
  Tensor memory = cell.initial_memory(ctx, kHeldOut), token = Tensor::empty({kHeldOut, 1, kTokenWidth}), next;
  const auto x = batch.x.view<float, 3>();
  for (std::int64_t t = 0; t < kSeen + kBlind - 1; ++t) {
    for (std::int64_t b = 0; b < kHeldOut; ++b) {
      float* in = token.data<float>() + b * kTokenWidth;
      for (int k = 0; k < kTokenWidth; ++k) {
        const bool seen = t < kSeen || k == kStateWidth;
        in[k] = seen ? x(b, t, k) : next.data<float>()[b * kStateWidth + k];
      }
    }
    memory = cell.step(ctx, memory, token);
    next = cell.predict(ctx, memory);
    for (std::int64_t b = 0; t >= kSeen - 1 && b < kHeldOut; ++b) {
      errors[static_cast<std::size_t>(t - kSeen + 1)].add(
          angle_of(next.data<float>() + b * kStateWidth),
          truth[static_cast<std::size_t>(b)][static_cast<std::size_t>(t + 1)].angle);
    }
  }
  return errors;
}

// Two predictors without training: the last measured angle, and the simulator itself, told the last measured state.
Errors hold(const train::SequenceBatch& batch, const std::vector<std::vector<State>>& truth) {
  Errors errors(kBlind);
  for (std::size_t b = 0; b < truth.size(); ++b) {
    const float* last =
        batch.x.data<float>() + (static_cast<std::int64_t>(b) * batch.x.size(1) + kSeen - 1) * kTokenWidth;
    for (std::size_t h = 0; h < errors.size(); ++h) errors[h].add(angle_of(last), truth[b][kSeen + h].angle);
  }
  return errors;
}

Errors simulate(const train::SequenceBatch& batch, const std::vector<std::vector<State>>& truth) {
  Errors errors(kBlind);
  const auto x = batch.x.view<float, 3>();
  for (std::size_t b = 0; b < truth.size(); ++b) {
    const auto row = static_cast<std::int64_t>(b);
    const float* last = &x(row, kSeen - 1, 0);
    State state{angle_of(last), double{last[2]} * dynamics::kSpeedUnit};
    for (std::size_t h = 0; h < errors.size(); ++h) {
      state = dynamics::advance(state, x(row, kSeen - 1 + static_cast<std::int64_t>(h), kStateWidth), 0);
      errors[h].add(state.angle, truth[b][kSeen + h].angle);
    }
  }
  return errors;
}

double part(std::vector<double> sorted, double p) {
  std::ranges::sort(sorted);
  return sorted[static_cast<std::size_t>(p * static_cast<double>(sorted.size() - 1))];
}

// Holds the pendulum at `goal` for three seconds: a thousand times a second the cell takes a measurement and the torque
// in force, and the next torque is decided from what it predicts. The simulated pendulum moves one step a tick.
void control(const memory::MemoryUpdater& cell) {
  constexpr int kTicks = 3000;
  constexpr double kGoal = 0.3;
  Context ctx = Context::serial();
  const Rng noise = Rng(kSeed).stream("control");
  Tensor memory = cell.initial_memory(ctx, 1), token = Tensor::zeros({1, 1, kTokenWidth});
  State state{-0.8, 0};
  double torque = 0;
  AngleError held;
  std::vector<double> latency;
  auto due = Clock::now();
  int late = 0;
  for (int tick = 0; tick < kTicks; ++tick) {
    due += std::chrono::milliseconds(1);
    std::this_thread::sleep_until(due);
    const auto start = Clock::now();
    dynamics::measure(state, noise, 3 * static_cast<std::uint64_t>(tick), token.data<float>());
    token.data<float>()[kStateWidth] = static_cast<float>(torque);
    memory = cell.step(ctx, memory, token);
    const Tensor next = cell.predict(ctx, memory);
    latency.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    late += latency.back() > 1000 ? 1 : 0;
    state = dynamics::advance(state, torque,
                              dynamics::kJolt * noise.normal(10UL * kTicks + static_cast<std::uint64_t>(tick)));
    const double angle = angle_of(next.data<float>()), speed = double{next.data<float>()[2]} * dynamics::kSpeedUnit;
    const double wanted = dynamics::kGravity * std::sin(kGoal) + 12 * (kGoal - angle) - 5 * speed;  // holds, and damps
    torque = std::clamp(wanted / dynamics::kTorque, -1.0, 1.0);
    if (tick >= kTicks / 2) held.add(state.angle, kGoal);
  }
  std::printf("\n3. Control: %d steps at 1 kHz on one thread, torque decided from the predicted state\n\n", kTicks);
  std::printf(
      "  a step takes %.1f us (p50), %.1f us (p99), %.1f us (p99.9), %.1f us at most; %d later than the next tick\n",
      part(latency, 0.5), part(latency, 0.99), part(latency, 0.999), part(latency, 1), late);
  std::printf("  held at %.1f degrees, off by %.2f degrees on average over the second half\n\n",
              kGoal * 180 / std::numbers::pi, held.degrees());
  mark("median latency of a step", part(latency, 0.5), 1000, " us");
  mark("angle held, error", held.degrees(), 2, " degrees");
}

void row(const char* name, const Errors& errors) {
  std::printf("  %-44s", name);
  for (const std::size_t steps : {1, 10, 50, 100, 200, 500}) std::printf(" %7.2f", errors[steps - 1].degrees());
  std::printf("\n");
}

// Root mean square of the errors of steps first … last.
double between(const Errors& errors, std::size_t first, std::size_t last) {
  double squares = 0;
  for (std::size_t h = first; h <= last; ++h) squares += errors[h - 1].degrees() * errors[h - 1].degrees();
  return std::sqrt(squares / static_cast<double>(last - first + 1));
}

void run() {
  Context ctx = Context::parallel();
  const dynamics::PendulumTask task;
  const train::SequenceBatch held_out = task.sample(kSeed, "held-out", 0, kHeldOut, kSeen + kBlind);
  std::vector<std::vector<State>> truth;
  for (std::int64_t b = 0; b < kHeldOut; ++b) truth.push_back(task.states(kSeed, "held-out", b, kSeen + kBlind));

  const Trained imitated = train_cell(ctx, memory::DistillMode::Joint, "imitation");
  const Trained unrolled = train_cell(ctx, memory::DistillMode::Bptt, "through time");
  std::printf(
      "1. Training: a gated cell of %lld numbers on sequences of %lld steps (%.2f s of the pendulum's time)\n\n",
      static_cast<long long>(imitated.run->cell().memory_width()),
      static_cast<long long>(imitated.run->recipe().length),
      dynamics::kStep * static_cast<double>(imitated.run->recipe().length));
  std::printf("  by imitation (joint, then rounds)    %6lld steps  %6.1f s\n",
              static_cast<long long>(imitated.run->step()), imitated.seconds);
  std::printf("  by back-propagation through time     %6lld steps  %6.1f s\n\n",
              static_cast<long long>(unrolled.run->step()), unrolled.seconds);

  std::printf(
      "2. Roll-outs: %lld measured steps, then %lld steps on actions alone, %lld held-out sequences; error of the\n"
      "   angle in degrees (root mean square)\n\n",
      static_cast<long long>(kSeen), static_cast<long long>(kBlind), static_cast<long long>(kHeldOut));
  std::printf("  %-44s %7s %7s %7s %7s %7s %7s\n", "steps after the last measurement", "1", "10", "50", "100", "200",
              "500");
  const Errors held = hold(held_out, truth), by_imitation = roll_out(ctx, imitated.run->cell(), held_out, truth);
  row("the last measured angle", held);
  row("gated cell, by imitation", by_imitation);
  row("gated cell, through time", roll_out(ctx, unrolled.run->cell(), held_out, truth));
  row("the simulator, from the last measured state", simulate(held_out, truth));
  std::printf("\n");
  mark("imitation, steps 401 to 500, part of holding the angle",
       between(by_imitation, 401, 500) / between(held, 401, 500), 0.4, "");
  control(imitated.run->cell());
}

}  // namespace

int main() {
  try {
    run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dynamics: %s\n", error.what());
    return 1;
  }
  std::printf("\n%s\n", all_passed ? "every mark reached" : "NOT every mark reached");
  return all_passed ? 0 : 1;
}
