// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/task.h"

#include <cmath>
#include <numbers>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/autograd/functions.h"
#include "stepwell/core/error.h"
#include "stepwell/models/causal_lm.h"
#include "stepwell/models/forecaster.h"
#include "stepwell/models/stream.h"
#include "stepwell/train/adam.h"
#include "stepwell/train/sequence_task.h"
#include "stepwell/train/series.h"
#include "stepwell/train/text.h"

#include "tests/train/scratch_folder.h"
#include "tests/train/small_run.h"

namespace stepwell::train {
namespace {

std::unique_ptr<models::Model> tiny_model(const Task& task) {
  Config config;
  task.complete(config);
  config.set("width", 6);
  config.set_path("mixer_options.init", "active");
  return models::make_model(config, Rng(3));
}

// A series of `n` values: a wave and a little of what no wave has.
std::string series(int n) {
  std::string csv = "t,x\n";
  for (int i = 0; i < n; ++i) {
    csv += std::to_string(i) + "," + std::to_string(5 + 2 * std::sin(0.3 * i) + 0.01 * (i * 37 % 11)) + "\n";
  }
  return csv;
}

Recipe series_recipe(const ScratchFolder& scratch, int n, double fraction = 0.25, std::int64_t length = 8) {
  scratch.write("data.csv", series(n));
  Recipe recipe;
  recipe.csv = scratch.path("data.csv");
  recipe.column = "x";
  recipe.hold_out_fraction = fraction;
  recipe.length = length;
  return recipe;
}

// Windows are numbered over the run: how they are grouped into passes does not change them.
void expect_windows_do_not_depend_on_grouping(const Task& task, const models::Model& model) {
  Context ctx = Context::serial();
  const double together = task.loss(ctx, model, 5, 4, nullptr).value().at(0);
  const double first = task.loss(ctx, model, 5, 2, nullptr).value().at(0);
  const double second = task.loss(ctx, model, 7, 2, nullptr).value().at(0);
  EXPECT_NEAR(together, (first + second) / 2, 1e-6 * together);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, task.loss(ctx, model, 5, 2, nullptr).value().at(0));
}

TEST(TextTask, DrawsWindowsByNumber) {
  const ScratchFolder scratch;
  scratch.write("text", small_text());
  const auto task = make_task(small_recipe(scratch.path("text"), 1));
  expect_windows_do_not_depend_on_grouping(*task, *tiny_model(*task));
}

TEST(TextTask, CountsBitsAlongWholeDocuments) {
  const auto model = models::make_causal_lm({.backbone = {.width = 6}}, Rng(3));
  Context ctx = Context::serial();
  const std::string document = small_text().substr(0, 2500);  // three segments
  const Tensor input = Tensor::empty({1, 2500}, DType::I64), target = Tensor::empty({2500}, DType::I64);
  for (std::size_t t = 0; t < document.size(); ++t) {
    input.data<std::int64_t>()[t] = t ? document[t - 1] : '\n';
    target.data<std::int64_t>()[t] = document[t];
  }
  const NoGrad no_grad;
  models::States states;
  const Variable logits = model->forward(ctx, input, states);
  const double nats = cross_entropy(ctx, reshape(ctx, logits, {2500, 256}), target).value().at(0);
  const double expected = nats * 2500 / std::numbers::ln2;
  EXPECT_NEAR(document_bits(ctx, *model, document), expected, 1e-6 * expected);
  EXPECT_EQ(document_bits(ctx, *model, ""), 0);
}

TEST(TextTask, EvaluatesAnEqualShareOfEveryDocument) {
  const ScratchFolder scratch;
  scratch.write("a", small_text());
  scratch.write("held-1", std::string(300, 'x'));
  scratch.write("held-2", std::string(50, 'y'));
  Recipe recipe = small_recipe(scratch.path(""), 1);
  recipe.hold_out = "held-*";
  const auto task = make_task(recipe);
  const auto model = tiny_model(*task);
  Context ctx = Context::serial();
  const Figures all = task->evaluate(ctx, *model, 0), some = task->evaluate(ctx, *model, 200);
  EXPECT_EQ(all.at(0).first, "bits_per_byte");
  EXPECT_EQ(all.at(2).second, 350);
  EXPECT_EQ(some.at(2).second, 150);
  const double bits =
      document_bits(ctx, *model, std::string(300, 'x')) + document_bits(ctx, *model, std::string(50, 'y'));
  EXPECT_NEAR(all.at(0).second, bits / 350, 1e-9 * bits);
  const Unigram unigram(small_text());
  EXPECT_NEAR(some.at(1).second, (100 * unigram.bits('x') + 50 * unigram.bits('y')) / 150, 1e-9);
}

TEST(TextTask, ChangedDataHaveAnotherFingerprint) {
  const ScratchFolder scratch;
  scratch.write("a", small_text());
  scratch.write("held-1", "xy");
  scratch.write("held-2", "z");
  Recipe recipe = small_recipe(scratch.path(""), 1);
  recipe.hold_out = "held-*";
  const std::string before = make_task(recipe)->fingerprint();
  EXPECT_EQ(make_task(recipe)->fingerprint(), before);
  scratch.write("held-1", "x");
  scratch.write("held-2", "yz");
  EXPECT_NE(make_task(recipe)->fingerprint(), before);
}

TEST(SeriesTask, DrawsWindowsByNumber) {
  const ScratchFolder scratch;
  const auto task = make_task(series_recipe(scratch, 100));
  expect_windows_do_not_depend_on_grouping(*task, *tiny_model(*task));
}

TEST(SeriesTask, MeasuresInTheSeriesOwnUnits) {
  const ScratchFolder scratch;
  const auto task = make_task(series_recipe(scratch, 4000));
  const auto model = tiny_model(*task);
  for (layers::Parameter* p : model->parameters()) {  // predicts the mean, whatever it sees
    if (p->name == "out_proj.weight") p->set(Tensor::zeros(p->value.shape()));
  }
  Context ctx = Context::serial();
  const Figures figures = task->evaluate(ctx, *model, 0);
  EXPECT_EQ(figures.back().second, 999);         // 1,000 held out, one of them without one before it
  EXPECT_NEAR(figures.at(0).second, 2.0, 0.05);  // variance of 2 sin
  // (2 sin a − 2 sin b)² is 8 sin²(0.15) cos² on average, and the rest's steps of 0.04 or 0.07.
  EXPECT_NEAR(figures.at(1).second, 8 * std::pow(std::sin(0.15), 2) + 0.002, 0.003);
  EXPECT_EQ(task->evaluate(ctx, *model, 10).back().second, 10);
}

// What a model folder holds is enough to predict: a stream fed with the series' values makes the errors that were
// measured, and a model of another scale is measured with its own.
TEST(SeriesTask, AModelKeepsTheSeriesUnits) {
  const ScratchFolder scratch;
  const auto task = make_task(series_recipe(scratch, 400));
  models::save_model(*tiny_model(*task), scratch.path("model"));
  const auto model = models::load_model(scratch.path("model"));
  Context ctx = Context::serial();
  const double measured = task->evaluate(ctx, *model, 0).at(0).second;
  const std::vector<double> values = read_csv_column(scratch.path("data.csv"), "x");
  models::Stream stream(*model, ctx);
  double squares = 0, values_squared = 0;
  for (std::size_t t = 300; t + 1 < values.size(); ++t) {
    const auto value = static_cast<float>(values[t]);
    float next = 0;
    ASSERT_TRUE(stream.step(std::span(&value, 1), std::span(&next, 1)));
    squares += (next - values[t + 1]) * (next - values[t + 1]);
    values_squared += values[t + 1] * values[t + 1];
  }
  EXPECT_NEAR(squares / 99, measured, 1e-4 * measured);

  const auto bare = models::make_forecaster({.backbone = {.width = 6}}, Rng(3));
  for (layers::Parameter* p : bare->parameters()) {  // predicts 0
    if (p->name == "out_proj.weight") p->set(Tensor::zeros(p->value.shape()));
  }
  EXPECT_NEAR(task->evaluate(ctx, *bare, 0).at(0).second, values_squared / 99, 1e-4 * values_squared / 99);
}

TEST(SeriesTask, RefusesTooLittleAndConstantData) {
  const ScratchFolder scratch;
  EXPECT_THROW(make_task(series_recipe(scratch, 10)), Error);
  EXPECT_NO_THROW(make_task(series_recipe(scratch, 12)));
  const Recipe recipe = series_recipe(scratch, 12);
  scratch.write("data.csv", "x\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n");
  EXPECT_THROW(make_task(recipe), Error);
  Context ctx = Context::serial();
  const auto task = make_task(series_recipe(scratch, 20, 0));
  EXPECT_TRUE(task->evaluate(ctx, *tiny_model(*task), 0).empty());
}

Recipe task_recipe(const char* name, std::int64_t length = 8) {
  Recipe recipe;
  recipe.task = name;
  recipe.held_out = 7;
  recipe.length = length;
  return recipe;
}

TEST(SampledTask, DrawsWindowsByNumber) {
  for (const char* name : {"oscillators", "parity", "copy"}) {
    const auto task = make_task(task_recipe(name));
    expect_windows_do_not_depend_on_grouping(*task, *tiny_model(*task));
  }
}

// The loss and the figure, from the outputs at every token.
TEST(SampledTask, AsksWhereTheTaskAsks) {
  Context ctx = Context::serial();
  const NoGrad no_grad;
  for (const char* name : {"regimes", "needle", "copy"}) {
    const auto task = make_task(task_recipe(name, 9));
    const auto model = tiny_model(*task);
    const auto source = make_sequence_task(name);
    const SequenceBatch windows = source->sample(0, "train", 3, 2, 9),
                        held_out = source->sample(0, "held-out", 0, 7, 9);
    models::States states, more_states;
    const Tensor y = model->forward(ctx, windows.x, states).value();
    double loss = 0, asked = 0;
    for (std::int64_t i = 0; i < 2 * 9; ++i) {
      if (!windows.asked.data<bool>()[i]) continue;
      const double said = y.at(i), right = windows.target.at(i);
      loss += source->answer() == Answer::Value ? std::pow(said - right, 2) : std::log1p(std::exp(-said * right));
      asked += 1;
    }
    EXPECT_NEAR(task->loss(ctx, *model, 3, 2, nullptr).value().at(0), loss / asked, 1e-6) << name;
    const Figures figures = task->evaluate(ctx, *model, 0);
    EXPECT_EQ(figures.front().second, score(*source, held_out, model->forward(ctx, held_out.x, more_states).value()));
    EXPECT_EQ(figures.at(1), source->baselines(held_out).at(0));
    EXPECT_EQ(figures.back(), (std::pair<std::string, double>{"sequences", 7}));
    EXPECT_EQ(task->evaluate(ctx, *model, 20).back().second, 2);
  }
}

// From the reference's initial values, without a NaN on the way.
TEST(SampledTask, TwoHundredStepsHalveTheLossAndMoveEveryParameter) {
  const auto task = make_task(task_recipe("oscillators", 32));
  Config config;
  task->complete(config);
  config.set("width", 8);
  config.set("layers", 1);
  const auto model = models::make_model(config, Rng(5));
  Context ctx = Context::parallel(2);
  std::vector<Tensor> before;
  for (const layers::Parameter* p : model->parameters()) before.push_back(p->value.value().clone());
  Adam adam(model->parameters(), {});
  double first = 0, last = 0;
  for (int step = 0; step < 200; ++step) {
    const Variable loss = task->loss(ctx, *model, 8 * step, 8, nullptr);
    ASSERT_TRUE(std::isfinite(loss.value().at(0))) << step;
    (step < 10 ? first : last) += step < 10 || step >= 190 ? loss.value().at(0) : 0;
    ASSERT_FALSE(adam.step(ctx, backward(ctx, loss), 1e-2).skipped);
  }
  EXPECT_LT(last, first / 2);
  const auto parameters = model->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_FALSE(parameters[i]->value.value().same_bits(before[i])) << parameters[i]->name;
  }
}

TEST(SampledTask, ChangesWithWhatDecidesIt) {
  const std::string before = make_task(task_recipe("copy"))->fingerprint();
  EXPECT_EQ(make_task(task_recipe("copy"))->fingerprint(), before);
  EXPECT_NE(make_task(task_recipe("copy", 9))->fingerprint(), before);
  EXPECT_NE(make_task(task_recipe("parity"))->fingerprint(), before);
  Recipe wider = task_recipe("copy");
  wider.task_options.set("width", 2);
  EXPECT_NE(make_task(wider)->fingerprint(), before);
  Context ctx = Context::serial();
  EXPECT_THROW(make_task(task_recipe("copy"))->evaluate(ctx, *tiny_model(*make_task(wider)), 0), Error);
  EXPECT_THROW(make_task(task_recipe("copy", 1)), Error);
  EXPECT_THROW(make_task(task_recipe("none")), Error);
}

}  // namespace
}  // namespace stepwell::train
