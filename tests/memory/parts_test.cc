// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// The driver's parts: cutting transitions out of sequences, losses, roll-outs, the pool of transitions.
#include <cmath>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/memory/cells.h"

#include "memory/examples.h"
#include "memory/losses.h"
#include "memory/rollout.h"
#include "memory/transition_pool.h"
#include "tests/memory/examples.h"

namespace stepwell::memory {
namespace {

TEST(Examples, NextAnswersAreThoseAskedForNext) {
  const auto copy = train::make_sequence_task("copy");
  const train::SequenceBatch batch = copy->sample(1, "train", 0, 3, 8);
  const Tensor answers = next_answers(batch);
  for (std::int64_t b = 0; b < 3; ++b) {
    for (std::int64_t t = 0; t < 8; ++t) {
      const std::int64_t asked = std::max<std::int64_t>(t, 4);
      EXPECT_EQ(answers.at(b * 8 + t), batch.target.at(b * 8 + asked)) << t;
    }
  }
  for (std::int64_t b = 0; b < 3; ++b) batch.asked.data<bool>()[b * 8 + 7] = false;
  EXPECT_TRUE(std::isnan(next_answers(batch).at(7)));

  const Tensor three = next_answers(batch, 3);  // questions at tokens 4, 5 and 6 by now
  ASSERT_EQ(three.shape(), Shape({3, 8, 3}));
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(three.at(2 * 3 + i), batch.target.at(4 + i));
    if (i < 2) {
      EXPECT_EQ(three.at(5 * 3 + i), batch.target.at(5 + i));
    } else {
      EXPECT_TRUE(std::isnan(three.at(5 * 3 + i)));
    }
  }
}

TEST(Losses, AnswersThatAreNotThereCountForNothing) {
  Context ctx = Context::serial();
  const Tensor prediction = random_tensor({3, 2}, 1, -1, 1, DType::F32),
               answers = random_tensor({3, 2}, 2, -1, 1, DType::F32);
  EXPECT_TRUE(answer_loss(ctx, prediction, answers).value().same_bits(mse_loss(ctx, prediction, answers).value()));
  answers.data<float>()[1] = answers.data<float>()[4] = std::nanf("");
  double sum = 0;
  for (const std::int64_t i : {0, 2, 3, 5}) sum += std::pow(prediction.at(i) - answers.at(i), 2) / 4;
  const Variable leaf = Variable::leaf(prediction), loss = answer_loss(ctx, leaf, answers);
  EXPECT_NEAR(loss.value().at(0), sum, 1e-6);
  const Tensor gradient = backward(ctx, loss).of(leaf);
  EXPECT_EQ(gradient.at(1), 0);
  EXPECT_NEAR(gradient.at(2), 2 * (prediction.at(2) - answers.at(2)) / 4, 1e-6);
}

TEST(Examples, DrawsAreWindowsBeforeAndAfterAToken) {
  const auto task = train::make_sequence_task("oscillators");
  const train::SequenceBatch batch = task->sample(1, "train", 0, 64, 10);
  const std::int64_t d = task->input_width();
  const Draw draw = draw_transitions(batch, {.window = 4, .context = 3}, Rng(1), 0);
  ASSERT_EQ(draw.windows.size(), 128U);
  std::map<std::int64_t, int> times;
  for (std::int64_t b = 0; b < 64; ++b) {
    const ops::RowWindow before = draw.windows[static_cast<std::size_t>(2 * b)],
                         after = draw.windows[static_cast<std::size_t>(2 * b + 1)];
    const float* newest = draw.rows.data<float>() + (after.begin + after.length - 1) * d;
    std::int64_t t = 0;
    while (!std::equal(newest, newest + d, batch.x.data<float>() + (b * 10 + t) * d)) ++t;
    ++times[t];
    EXPECT_EQ(after.length, std::min<std::int64_t>(t + 1, 4));
    EXPECT_EQ(draw.first[static_cast<std::size_t>(b)], t == 0);
    EXPECT_EQ(before.length, t == 0 ? 1 : std::min<std::int64_t>(t, 4));
    EXPECT_EQ(before.begin + before.length, after.begin + after.length - (t > 0 ? 1 : 0));
    for (std::int64_t i = 0; i < 3 * d; ++i) {
      const std::int64_t at = (b * 10 + t - 2) * d + i;
      EXPECT_EQ(draw.tokens.at(b * 3 * d + i), t - 2 + i / d < 0 ? 0 : batch.x.at(at));
    }
    for (std::int64_t i = 0; i < d; ++i) EXPECT_EQ(draw.answers.at(b * d + i), batch.target.at((b * 10 + t) * d + i));
  }
  EXPECT_EQ(times.size(), 10U);
}

TEST(Examples, AShareOfTheDrawsIsAtTheDecisiveToken) {
  const auto needle = train::make_sequence_task("needle");
  const train::SequenceBatch batch = needle->sample(1, "train", 0, 400, 96);
  const Draw draw = draw_transitions(batch, {.window = 96, .context = 1, .event_share = 0.25}, Rng(1), 0);
  int decisive = 0;
  for (std::int64_t b = 0; b < 400; ++b) decisive += draw.tokens.at(b * 2 + 1) == 1;
  EXPECT_NEAR(decisive, 104, 30);
}

TEST(Losses, UniformityIsItsDefinition) {
  Context ctx = Context::serial();
  const Tensor x = random_tensor({5, 3}, 1);
  double sum = 0;
  for (std::int64_t i = 0; i < 5; ++i) {
    for (std::int64_t j = 0; j < 5; ++j) {
      double ij = 0, ii = 0, jj = 0;
      for (std::int64_t k = 0; k < 3; ++k) {
        ij += x.at(i * 3 + k) * x.at(j * 3 + k);
        ii += x.at(i * 3 + k) * x.at(i * 3 + k);
        jj += x.at(j * 3 + k) * x.at(j * 3 + k);
      }
      if (i != j) sum += std::exp(-2 * (2 - 2 * ij / std::sqrt(ii * jj)));
    }
  }
  EXPECT_NEAR(uniformity_loss(ctx, x).value().at(0), std::log(sum / 20), 1e-9);
  expect_gradients([](Context& c, const Variables& v) { return Variables{uniformity_loss(c, v[0])}; }, {{"x", x}});
}

TEST(Losses, UnrolledLossHasTheGradientOfARollout) {
  Context ctx = Context::serial();
  const auto copy = train::make_sequence_task("copy");
  const train::SequenceBatch batch = copy->sample(1, "train", 0, 2, 6);
  GatedMemoryUpdater cell(4, 2, 1, Config::Object{}, Rng(3));
  const Tensor memories = free_rollout(ctx, cell, batch.x), y = cell.predict(ctx, memories);
  double sum = 0;
  for (std::int64_t row = 0; row < 12; ++row) {
    if (batch.asked.data<bool>()[row]) sum += std::pow(y.at(row) - batch.target.at(row), 2) / 6;
  }
  EXPECT_NEAR(unrolled_loss(ctx, cell, batch).value().at(0), sum, 1e-6);
}

TEST(Rollout, VisitsRecordTheCellsOwnMemoriesAndTheTeachersLabels) {
  Context ctx = Context::serial();
  const GatedMemoryUpdater cell(4, 3, 3, Config::Object{}, Rng(3));
  const Tensor x = random_tensor({2, 5, 3}, 1, -1, 1, DType::F32),
               teacher = random_tensor({2, 5, 4}, 2, -1, 1, DType::F32);
  const Tensor free = free_rollout(ctx, cell, x);
  const Transitions own = visit(ctx, cell, x, teacher, {}, Rng(1)).transitions;
  const Transitions taught = visit(ctx, cell, x, teacher, {.beta = 1}, Rng(1)).transitions;
  const Transitions of_teacher = teacher_transitions(ctx, cell, x, teacher);
  EXPECT_TRUE(taught.memory.same_bits(of_teacher.memory));
  EXPECT_TRUE(taught.target.same_bits(of_teacher.target));
  for (std::int64_t t = 0; t < 5; ++t) {
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t i = 0; i < 4; ++i) {
        const std::int64_t row = (t * 2 + b) * 4 + i, before = (b * 5 + t - 1) * 4 + i;
        EXPECT_EQ(own.memory.at(row), t == 0 ? 0 : free.at(before));
        EXPECT_EQ(of_teacher.memory.at(row), t == 0 ? 0 : teacher.at(before));
        EXPECT_EQ(own.target.at(row), teacher.at(before + 4));
      }
    }
  }
}

TEST(Rollout, GuardStartsARunawaySequenceAgain) {
  Context ctx = Context::serial();
  ClonedMemoryUpdater cell(2, 1, 1, Config::Object{{"hidden", 1}}, Rng(3));
  cell.set_named_parameters(
      {{"w_in", Tensor::full({1, 3}, 10)}, {"w_mem", Tensor::full({2, 1}, 10)}, {"w_read", Tensor::zeros({1, 2})}});
  const Tensor x = Tensor::full({1, 40, 1}, 1), teacher = Tensor::full({1, 40, 2}, 0.5);
  const Visits visits = visit(ctx, cell, x, teacher, {.guard = 4}, Rng(1));
  EXPECT_EQ(visits.restarts, 10);
  EXPECT_EQ(visits.transitions.memory.at(2 * 4), 0.5);  // after four steps at the clamp
}

TEST(TransitionPool, KeepsTheTeachersAndAFairSampleOfTheRest) {
  const auto rows = [](float value, std::int64_t n) {
    const Tensor t = Tensor::full({n, 2}, value);
    return Transitions{.memory = t, .tokens = Tensor::zeros({n, 1, 3}), .target = t, .next = {}};
  };
  TransitionPool pool(2, 3, 200, Rng(1));
  pool.keep(rows(-1, 50));
  for (int round = 0; round < 10; ++round) pool.visit(rows(static_cast<float>(round), 100));
  EXPECT_EQ(pool.kept(), 50);
  EXPECT_EQ(pool.visited(), 200);
  const Transitions drawn = pool.draw(Rng(2), 5000, 1);
  std::map<double, int> counts;
  for (std::int64_t i = 0; i < 5000; ++i) ++counts[drawn.memory.at(2 * i)];
  EXPECT_NEAR(counts[-1], 1000, 120);
  for (int round = 0; round < 10; ++round) EXPECT_NEAR(counts[round], 400, 250) << round;

  TransitionPool copy(2, 3, 200, Rng(1));
  copy.set_state(pool.state());
  pool.visit(rows(77, 30));
  copy.visit(rows(77, 30));
  EXPECT_TRUE(copy.draw(Rng(3), 500, 1).memory.same_bits(pool.draw(Rng(3), 500, 1).memory));
}

}  // namespace
}  // namespace stepwell::memory
