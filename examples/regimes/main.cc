// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// De-noising regimes: next-value prediction on a series that jumps between four levels under noise, in two parts that
// answer two questions. Can one Mamba model fit one sequence to the last digit (capacity)? Does it beat every simple
// predictor on sequences it never saw, and stay good at eight times the length it was trained at (generalisation)?
// Prints a table for each part with its pass marks; exit status 1 if one is missed.
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "stepwell/autograd/functions.h"
#include "stepwell/core/context.h"
#include "stepwell/models/model.h"
#include "stepwell/train/adam.h"
#include "stepwell/train/schedule.h"
#include "stepwell/train/sequence_task.h"

namespace {

using namespace stepwell;

std::unique_ptr<models::Model> make_forecaster(std::int64_t width, std::int64_t layers, std::int64_t states,
                                               const Rng& rng) {
  Config config;
  config.set("type", "forecaster");
  config.set("width", width);
  config.set("layers", layers);
  config.set("mixer", "mamba");
  config.set_path("mixer_options.d_state", states);
  return models::make_model(config, rng);
}

Variable loss_on(Context& ctx, const models::Model& model, const train::SequenceBatch& s) {
  models::States states;
  return mse_loss(ctx, model.forward(ctx, s.x, states), s.target);
}

double error_on(Context& ctx, const models::Model& model, const train::SequenceBatch& s) {
  const NoGrad no_grad;
  return loss_on(ctx, model, s).value().at(0);
}

// One Adam step on a batch of sequences.
void train_on(Context& ctx, const models::Model& model, train::Adam& adam, const train::SequenceBatch& s, double lr) {
  adam.step(ctx, backward(ctx, loss_on(ctx, model, s)), lr);
}

bool all_passed = true;

void mark(const char* what, double value, const char* sign, double wanted, bool passed, const char* unit = "") {
  std::printf("  %-44s %12.6g%s   %s %g%s   %s\n", what, value, unit, sign, wanted, unit, passed ? "PASS" : "FAIL");
  all_passed = all_passed && passed;
}

void row(const char* name, double error, double persistence) {
  std::printf("  %-28s %12.6g %20.4g\n", name, error, persistence / error);
}

struct Rivals {
  double persistence, exponential, bayes;
};
Rivals rivals_on(const train::SequenceTask& task, const train::SequenceBatch& s) {
  const train::Figures figures = task.baselines(s);
  return {figures[0].second, figures[1].second, figures[2].second};
}

void capacity(Context& ctx, const train::SequenceTask& task) {
  const auto sequence = task.sample(1, "capacity", 0, 1, 96);
  const auto model = make_forecaster(32, 2, 16, Rng(1).stream("model"));
  train::Adam adam(model->parameters(), {.clip_norm = 1});
  const double untrained = error_on(ctx, *model, sequence);
  const train::Schedule rate{.peak = 0.01, .warmup = 10, .decay = train::Decay::Cosine, .steps = 400};
  for (int step = 0; step < 400; ++step) train_on(ctx, *model, adam, sequence, rate.at(step));
  const double trained = error_on(ctx, *model, sequence);

  std::printf("1. Capacity: one sequence of 96 values, 2 layers of width 32, 400 Adam steps\n\n");
  std::printf("  %-28s %12s %20s\n", "predictor", "MSE", "times better than");
  std::printf("  %-28s %12s %20s\n", "", "", "persistence");
  const Rivals rivals = rivals_on(task, sequence);
  const double simple = rivals.persistence;
  row("persistence", simple, simple);
  row("best exponential average", rivals.exponential, simple);
  row("Bayes filter, levels known", rivals.bayes, simple);
  row("Mamba, untrained", untrained, simple);
  row("Mamba, trained", trained, simple);
  std::printf("\n");
  mark("MSE", trained, "<=", 0.0002, trained <= 0.0002);
  mark("times below persistence", simple / trained, ">=", 450, simple >= 450 * trained);
  mark("times below untrained", untrained / trained, ">=", 1000, untrained >= 1000 * trained);
  std::printf("  (far below the noise: the sequence is learnt by heart, which says what the model can hold)\n\n");
}

void generalisation(Context& ctx, const train::SequenceTask& task) {
  const auto near = task.sample(2, "held out 64", 0, 512, 64), far = task.sample(2, "held out 512", 0, 128, 512);
  const auto model = make_forecaster(16, 1, 8, Rng(2).stream("model"));
  train::Adam adam(model->parameters(), {.clip_norm = 1});
  const double untrained_near = error_on(ctx, *model, near), untrained_far = error_on(ctx, *model, far);
  constexpr int kSteps = 600, kBatch = 16;
  for (int step = 0; step < kSteps; ++step) {
    train_on(ctx, *model, adam, task.sample(2, "training", step * kBatch, kBatch, 64), 5e-3);
  }

  std::printf("2. Generalisation: one layer of width 16, 600 Adam steps on 16 fresh sequences of 64 values each;\n");
  std::printf("   held-out sequences of 64 values, and of 512\n\n");
  std::printf("  %-28s %12s %12s\n", "predictor", "MSE, T 64", "MSE, T 512");
  auto both = [](const char* name, double a, double b) { std::printf("  %-28s %12.4f %12.4f\n", name, a, b); };
  const Rivals rivals_near = rivals_on(task, near), rivals_far = rivals_on(task, far);
  const double trained_near = error_on(ctx, *model, near), trained_far = error_on(ctx, *model, far);
  both("persistence", rivals_near.persistence, rivals_far.persistence);
  both("best exponential average", rivals_near.exponential, rivals_far.exponential);
  both("Mamba, untrained", untrained_near, untrained_far);
  both("Mamba, trained", trained_near, trained_far);
  both("Bayes filter, levels known", rivals_near.bayes, rivals_far.bayes);
  both("noise alone", 0.04, 0.04);
  std::printf("\n");
  const auto part = [](double error, const Rivals& rivals) {
    return 100 * (rivals.persistence - error) / (rivals.persistence - rivals.bayes);
  };
  const double near_part = part(trained_near, rivals_near), far_part = part(trained_far, rivals_far);
  mark("of the way from persistence to Bayes, T 64", near_part, ">=", 80, near_part >= 80, " %");
  mark("of the way from persistence to Bayes, T 512", far_part, ">=", 70, far_part >= 70, " %");
}

}  // namespace

int main() {
  try {
    Context ctx = Context::parallel();
    const auto task = train::make_sequence_task("regimes");
    capacity(ctx, *task);
    generalisation(ctx, *task);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "regimes: %s\n", error.what());
    return 1;
  }
  std::printf("\n%s\n", all_passed ? "every mark reached" : "NOT every mark reached");
  return all_passed ? 0 : 1;
}
