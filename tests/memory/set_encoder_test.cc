// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/set_encoder.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/train/sequence_task.h"

#include "tests/autograd/expect_gradients.h"

namespace stepwell::memory {
namespace {

SetEncoderConfig small(bool recency, MemoryBound bound = MemoryBound::None, std::int64_t heads = 1) {
  SetEncoderConfig c;
  c.token_width = 3;
  c.embed_width = 8;
  c.memory_width = 5;
  c.window = 7;
  c.recency = recency;
  c.bound = bound;
  c.heads = heads;
  return c;
}

// Of the training loss, early and late, on windows of a task.
double fall_of_loss(SetEncoderConfig config, const char* task_name) {
  Context ctx = Context::serial();
  const auto task = train::make_sequence_task(task_name);
  config.token_width = task->input_width();
  config.output_width = task->output_width();
  SetEncoderTeacher teacher(config, Rng(5));
  double first = 0, last = 0;
  constexpr int kSteps = 600, kAveraged = 20;
  for (int i = 0; i < kSteps; ++i) {
    const train::SequenceBatch batch = task->sample(1, "train", 64 * i, 64, config.window);
    const Tensor next = batch.target.slice(1, config.window - 1, 1).clone().reshape({64, config.output_width});
    const UpdateReport report = teacher.train_step(ctx, batch.x, next, 3e-3);
    if (i < 1) first = report.readout_loss;
    if (i >= kSteps - kAveraged) last += report.readout_loss / kAveraged;
  }
  return first / last;
}

TEST(SetEncoder, LossFallsMoreThanFivefoldWithRecency) {
  SetEncoderConfig config;
  config.recency = true;
  EXPECT_GT(fall_of_loss(config, "oscillators"), 5);
}

// Without recency a set has no order, and a task that asks for what a set has: the mean of its tokens.
TEST(SetEncoder, LossFallsMoreThanFivefoldWithoutRecency) {
  Context ctx = Context::serial();
  SetEncoderTeacher teacher(small(false), Rng(5));
  double first = 0, last = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Tensor x = random_tensor({64, 7, 3}, i, -1, 1, DType::F32), mean = Tensor::zeros({64, 3});
    for (std::int64_t e = 0; e < x.numel(); ++e) mean.data<float>()[e / 21 * 3 + e % 3] += x.data<float>()[e] / 7;
    last = teacher.train_step(ctx, x, mean, 1e-2).readout_loss;
    if (i == 0) first = last;
  }
  EXPECT_GT(first / last, 5);
}

TEST(SetEncoder, RepeatsBitForBitAtAFixedSizeForEveryWindow) {
  Context ctx = Context::serial(), parallel = Context::parallel(3);
  for (const bool recency : {false, true}) {
    const SetEncoderTeacher teacher(small(recency), Rng(1));
    for (std::int64_t w = 1; w <= 7; ++w) {
      const Tensor x = random_tensor({4, w, 3}, 3, -1, 1, DType::F32);
      const Tensor memory = teacher.encode(ctx, x).value();
      EXPECT_EQ(memory.shape(), Shape({4, 5}));
      EXPECT_TRUE(teacher.encode(ctx, x).value().same_bits(memory));
      EXPECT_TRUE(teacher.encode(parallel, x).value().same_bits(memory));
      EXPECT_TRUE(teacher.encode(ctx, x.slice(0, 2, 1)).value().same_bits(memory.slice(0, 2, 1)));
    }
    EXPECT_THROW(teacher.encode(ctx, Tensor::zeros({1, 8, 3})), Error);
    EXPECT_THROW(teacher.encode(ctx, Tensor::zeros({1, 2, 4})), Error);
  }
}

TEST(SetEncoder, TrajectoryHoldsTheMemoryOfEveryPrefixAndSlidesItsWindow) {
  Context ctx = Context::serial();
  for (const bool recency : {false, true}) {
    const SetEncoderTeacher teacher(small(recency, MemoryBound::Rms), Rng(1));
    const Tensor x = random_tensor({2, 12, 3}, 4, -1, 1, DType::F32);
    const Tensor trajectory = teacher.encode_trajectory(ctx, x);
    ASSERT_EQ(trajectory.shape(), Shape({2, 12, 5}));
    for (std::int64_t t = 0; t < 12; ++t) {
      const std::int64_t w = std::min<std::int64_t>(t + 1, 7);
      const Tensor one = teacher.encode(ctx, x.slice(1, t + 1 - w, w).clone()).value();
      EXPECT_TRUE(one.same_bits(trajectory.slice(1, t, 1).clone().reshape({2, 5}))) << t;
    }
  }
}

TEST(SetEncoder, IsCausal) {
  Context ctx = Context::serial();
  const SetEncoderTeacher teacher(small(true), Rng(1));
  const Tensor x = random_tensor({1, 9, 3}, 4, -1, 1, DType::F32), before = teacher.encode_trajectory(ctx, x);
  const Tensor changed = x.clone();
  for (int i = 0; i < 3; ++i) changed.data<float>()[5 * 3 + i] = std::nanf("");
  const Tensor after = teacher.encode_trajectory(ctx, changed);
  EXPECT_TRUE(after.slice(1, 0, 5).same_bits(before.slice(1, 0, 5)));
  EXPECT_TRUE(std::isnan(after.at(5 * 5)));
}

TEST(SetEncoder, SeesOrderWithRecencyOnly) {
  Context ctx = Context::serial();
  const Tensor x = random_tensor({1, 7, 3}, 4, -1, 1, DType::F32), reversed = Tensor::empty({1, 7, 3});
  for (std::int64_t i = 0; i < 7; ++i) reversed.slice(1, 6 - i, 1).copy_from(x.slice(1, i, 1));
  const auto change = [&](bool recency) {
    const SetEncoderTeacher teacher(small(recency), Rng(1));
    const Tensor a = teacher.encode(ctx, x).value(), b = teacher.encode(ctx, reversed).value();
    double difference = 0, size = 0;
    for (std::int64_t i = 0; i < a.numel(); ++i) {
      difference = std::max(difference, std::fabs(a.at(i) - b.at(i)));
      size = std::max(size, std::fabs(a.at(i)));
    }
    return difference / size;
  };
  EXPECT_LT(change(false), 1e-6);
  EXPECT_GT(change(true), 1e-2);
}

// What recency would use has no influence while it is off.
TEST(SetEncoder, RecencyOffIsTheSameBitsAsWithoutTheOption) {
  Context ctx = Context::serial();
  SetEncoderConfig half_life = small(false);
  half_life.half_life = 3;
  half_life.window = 70;
  const Tensor x = random_tensor({2, 5, 3}, 4, -1, 1, DType::F32);
  EXPECT_TRUE(SetEncoderTeacher(half_life, Rng(1))
                  .encode(ctx, x)
                  .value()
                  .same_bits(SetEncoderTeacher(small(false), Rng(1)).encode(ctx, x).value()));
}

TEST(SetEncoder, ParametersRoundTripBitForBit) {
  Context ctx = Context::serial();
  SetEncoderTeacher a(small(true), Rng(1)), b(small(true), Rng(2));
  const Tensor x = random_tensor({2, 5, 3}, 4, -1, 1, DType::F32), next = random_tensor({2, 3}, 5, -1, 1, DType::F32);
  EXPECT_FALSE(a.encode(ctx, x).value().same_bits(b.encode(ctx, x).value()));
  for (int i = 0; i < 3; ++i) a.train_step(ctx, x, next, 1e-2);
  b.set_named_parameters(a.named_parameters());
  b.set_optimizer_state(a.optimizer_state());
  EXPECT_TRUE(a.encode(ctx, x).value().same_bits(b.encode(ctx, x).value()));
  a.train_step(ctx, x, next, 1e-2);
  b.train_step(ctx, x, next, 1e-2);
  EXPECT_TRUE(a.encode(ctx, x).value().same_bits(b.encode(ctx, x).value()));
}

TEST(SetEncoder, EveryParameterHasTheGradientOfItsDefinitionAndMatters) {
  Context ctx = Context::serial();
  for (const bool recency : {false, true}) {
    for (const MemoryBound bound : {MemoryBound::None, MemoryBound::Tanh, MemoryBound::Rms}) {
      SetEncoderTeacher teacher(small(recency, bound, bound == MemoryBound::None ? 2 : 1), Rng(1));
      teacher.to(DType::F64);
      std::vector<GradcheckInput> inputs = {{"x", random_tensor({9, 3}, 4)}};
      for (const auto& [name, tensor] : teacher.named_parameters()) inputs.push_back({name, tensor.clone()});
      const std::array<ops::RowWindow, 3> windows = {ops::RowWindow{0, 1}, {0, 7}, {3, 6}};
      const auto parameters = teacher.parameters();
      const auto run = [&](const Variables& v) {
        for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i]->value = v[i + 1];
        const Variable memory = teacher.encode(ctx, v[0], windows);
        return Variables{memory, teacher.predict(ctx, memory)};
      };
      const GradcheckResult result = gradcheck(ctx, run, inputs);
      EXPECT_TRUE(result.passed) << result.to_string();
      EXPECT_GE(result.checked, 27 + teacher.parameter_count());
      // Liveness: a change of any parameter shows.
      Variables values;
      for (const GradcheckInput& input : inputs) values.push_back(input.value);
      const Variables before = run(values);
      for (std::size_t i = 1; i < values.size(); ++i) {
        Variables moved = values;
        const Tensor t = values[i].value().clone();
        for (double& p : t.span<double>()) p += 0.1;
        moved[i] = t;
        EXPECT_FALSE(run(moved)[1].value().same_bits(before[1].value())) << inputs[i].name;
      }
    }
  }
}

TEST(SetEncoder, SkipsAStepThatIsNotFinite) {
  Context ctx = Context::serial();
  SetEncoderTeacher teacher(small(true), Rng(1));
  const Tensor x = random_tensor({2, 5, 3}, 4, -1, 1, DType::F32), next = random_tensor({2, 3}, 5, -1, 1, DType::F32);
  teacher.train_step(ctx, x, next, 1e-2);
  const Tensor before = teacher.encode(ctx, x).value();
  x.data<float>()[3] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(teacher.train_step(ctx, x, next, 1e-2).skipped);
  x.data<float>()[3] = 0.5F;
  const Tensor again = random_tensor({2, 5, 3}, 4, -1, 1, DType::F32);
  EXPECT_TRUE(teacher.encode(ctx, again).value().same_bits(before));
}

TEST(SetEncoder, ConfigurationReadsWhatItWrites) {
  SetEncoderConfig c = small(true, MemoryBound::Tanh, 2);
  c.half_life = 2.5;
  EXPECT_EQ(SetEncoderConfig::read(3, 3, c.options()).options(), c.options());
  EXPECT_THROW(SetEncoderConfig::read(3, 3, Config::Object{{"heads", 5}}), Error);
  EXPECT_THROW(SetEncoderConfig::read(3, 3, Config::Object{{"head", 1}}), Error);
}

}  // namespace
}  // namespace stepwell::memory
