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

#include "examples/regimes/world.h"

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

Variable loss_on(Context& ctx, const models::Model& model, const regimes::Sequences& s) {
  models::States states;
  return mse_loss(ctx, model.forward(ctx, s.inputs(), states), s.targets());
}

double error_on(Context& ctx, const models::Model& model, const regimes::Sequences& s) {
  const NoGrad no_grad;
  return loss_on(ctx, model, s).value().at(0);
}

// One Adam step on a batch of sequences.
void train_on(Context& ctx, const models::Model& model, train::Adam& adam, const regimes::Sequences& s, double lr) {
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

void capacity(Context& ctx) {
  const auto sequence = regimes::draw(Rng(1).stream("capacity"), 0, 1, 96);
  const auto model = make_forecaster(32, 2, 16, Rng(1).stream("model"));
  train::Adam adam(model->parameters(), {.clip_norm = 1});
  const double untrained = error_on(ctx, *model, sequence), simple = regimes::persistence(sequence);
  const train::Schedule rate{.peak = 0.01, .warmup = 10, .decay = train::Decay::Cosine, .steps = 400};
  for (int step = 0; step < 400; ++step) train_on(ctx, *model, adam, sequence, rate.at(step));
  const double trained = error_on(ctx, *model, sequence);

  std::printf("1. Capacity: one sequence of 96 values, 2 layers of width 32, 400 Adam steps\n\n");
  std::printf("  %-28s %12s %20s\n", "predictor", "MSE", "times better than");
  std::printf("  %-28s %12s %20s\n", "", "", "persistence");
  row("persistence", simple, simple);
  row("best exponential average", regimes::best_exponential(sequence), simple);
  row("Bayes filter, levels known", regimes::bayes_filter(sequence), simple);
  row("Mamba, untrained", untrained, simple);
  row("Mamba, trained", trained, simple);
  std::printf("\n");
  mark("MSE", trained, "<=", 0.0002, trained <= 0.0002);
  mark("times below persistence", simple / trained, ">=", 450, simple >= 450 * trained);
  mark("times below untrained", untrained / trained, ">=", 1000, untrained >= 1000 * trained);
  std::printf("  (far below the noise: the sequence is learnt by heart, which says what the model can hold)\n\n");
}

void generalisation(Context& ctx) {
  const Rng rng(2);
  const auto near = regimes::draw(rng.stream("held out 64"), 0, 512, 64);
  const auto far = regimes::draw(rng.stream("held out 512"), 0, 128, 512);
  const auto model = make_forecaster(16, 1, 8, rng.stream("model"));
  train::Adam adam(model->parameters(), {.clip_norm = 1});
  const double untrained_near = error_on(ctx, *model, near), untrained_far = error_on(ctx, *model, far);
  constexpr int kSteps = 600, kBatch = 16;
  for (int step = 0; step < kSteps; ++step) {
    train_on(ctx, *model, adam, regimes::draw(rng.stream("training"), step * kBatch, kBatch, 64), 5e-3);
  }

  std::printf("2. Generalisation: one layer of width 16, 600 Adam steps on 16 fresh sequences of 64 values each;\n");
  std::printf("   held-out sequences of 64 values, and of 512\n\n");
  std::printf("  %-28s %12s %12s\n", "predictor", "MSE, T 64", "MSE, T 512");
  auto both = [](const char* name, double a, double b) { std::printf("  %-28s %12.4f %12.4f\n", name, a, b); };
  const double simple_near = regimes::persistence(near), simple_far = regimes::persistence(far);
  const double bayes_near = regimes::bayes_filter(near), bayes_far = regimes::bayes_filter(far);
  const double trained_near = error_on(ctx, *model, near), trained_far = error_on(ctx, *model, far);
  both("persistence", simple_near, simple_far);
  both("best exponential average", regimes::best_exponential(near), regimes::best_exponential(far));
  both("Mamba, untrained", untrained_near, untrained_far);
  both("Mamba, trained", trained_near, trained_far);
  both("Bayes filter, levels known", bayes_near, bayes_far);
  both("noise alone", regimes::kNoise * regimes::kNoise, regimes::kNoise * regimes::kNoise);
  std::printf("\n");
  const double near_part = 100 * (simple_near - trained_near) / (simple_near - bayes_near);
  const double far_part = 100 * (simple_far - trained_far) / (simple_far - bayes_far);
  mark("of the way from persistence to Bayes, T 64", near_part, ">=", 80, near_part >= 80, " %");
  mark("of the way from persistence to Bayes, T 512", far_part, ">=", 70, far_part >= 70, " %");
}

}  // namespace

int main() {
  try {
    Context ctx = Context::parallel();
    capacity(ctx);
    generalisation(ctx);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "regimes: %s\n", error.what());
    return 1;
  }
  std::printf("\n%s\n", all_passed ? "every mark reached" : "NOT every mark reached");
  return all_passed ? 0 : 1;
}
