// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// Two memories read the same text: a byte-level language model of xLSTM[1:1] blocks (an mLSTM and an sLSTM with its
// feed-forward part) and one of Gated DeltaNet-2 layers, of equal size, trained on the same windows in the same order.
// Prints bits per byte on documents that neither has seen. Exit status 1 if one of them does no better than counting
// bytes.
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/core/context.h"
#include "stepwell/io/json.h"
#include "stepwell/models/model.h"
#include "stepwell/train/adam.h"
#include "stepwell/train/recipe.h"
#include "stepwell/train/schedule.h"
#include "stepwell/train/task.h"

namespace {

using namespace stepwell;

struct Contestant {
  const char *name, *config;
};
constexpr Contestant kContestants[] = {
    {"xLSTM[1:1]", R"({"type": "xlstm", "embedding_dim": 128, "num_blocks": 2, "num_heads": 4, "slstm_at": [1],
                       "tie_weights": true, "dropout": 0.2})"},
    {"Gated DeltaNet-2", R"({"type": "causal_lm", "mixer": "gated_delta_net2", "width": 128, "layers": 2,
                             "mixer_options": {"num_heads": 4, "head_dim": 30}, "dropout": 0.2})"},
};

struct Result {
  const char* name;
  std::int64_t parameters;
  double seconds, loss;
  train::Figures figures;
};

Result compete(Context& ctx, const Contestant& contestant, const train::Recipe& recipe, const train::Task& task) {
  const Rng rng(static_cast<std::uint64_t>(recipe.seed));
  const auto model = models::make_model(io::parse_json(contestant.config, contestant.name), rng.stream("model"));
  train::Adam adam(model->parameters(), recipe.adam);
  Result result{contestant.name, model->parameter_count(), 0, 0, {}};
  const auto start = std::chrono::steady_clock::now();
  ctx.set_mode(Mode::Fast);
  for (std::int64_t step = 0; step < recipe.steps; ++step) {
    const Rng dropout = rng.stream("dropout").stream(static_cast<std::uint64_t>(step));
    const Variable loss = task.loss(ctx, *model, step * recipe.batch, recipe.batch, &dropout);
    adam.step(ctx, backward(ctx, loss), recipe.schedule.at(step));
    result.loss = loss.value().at(0);
    std::fprintf(stderr, "\r%-18s step %4ld of %ld, loss %.3f ", contestant.name, step + 1, recipe.steps, result.loss);
  }
  ctx.set_mode(Mode::Exact);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.figures = task.evaluate(ctx, *model, 0);
  std::fprintf(stderr, "\r%-70s\r", "");
  return result;
}

}  // namespace

// text [STEPS [FILE|FOLDER…]]: without files, the licence texts of a Debian system with the MPL family held out.
int main(int argc, char** argv) {
  try {
    train::Recipe recipe;
    recipe.steps = argc > 1 ? std::stoll(argv[1]) : 300;
    recipe.text = {"/usr/share/common-licenses"};
    recipe.hold_out = "MPL*";
    if (argc > 2) {
      recipe.text.assign(argv + 2, argv + argc);
      recipe.hold_out = "";
    }
    recipe.schedule = {.peak = 6e-3, .warmup = 20, .decay = train::Decay::Cosine, .steps = recipe.steps};
    recipe.adam.weight_decay = 0.1;
    const auto task = train::make_task(recipe);
    Context ctx = Context::parallel();
    std::printf("%s\n%ld Adam steps of %ld windows of %ld bytes\n\n", task->describe().c_str(), recipe.steps,
                recipe.batch, recipe.length);
    std::vector<Result> results;
    for (const Contestant& contestant : kContestants) results.push_back(compete(ctx, contestant, recipe, *task));

    std::printf("%-18s %10s %9s %14s\n", "model", "parameters", "seconds", "bits per byte");
    bool learned = true;
    for (const Result& r : results) {
      std::printf("%-18s %10ld %9.1f %14.3f\n", r.name, r.parameters, r.seconds, r.figures.at(0).second);
      learned = learned && r.figures.at(0).second < r.figures.at(1).second;
    }
    std::printf("%-18s %10s %9s %14.3f\n", "byte frequencies", "256", "", results[0].figures.at(1).second);
    return learned ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "text: %s\n", error.what());
    return 1;
  }
}
