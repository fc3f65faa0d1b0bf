// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "memory/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "stepwell/ops/matmul.h"

#include "memory/losses.h"
#include "memory/rollout.h"

namespace stepwell::memory {

namespace {

constexpr std::int64_t kLastSteps = 100, kContractionNumbers = 4096, kMostContractions = 64;
constexpr const char* kHeldOut = "held-out";

// x wᵀ for x [B, T, n] and w [out, n].
Tensor read_with(Context& ctx, const Tensor& memories, const Tensor& w) {
  NoGrad no_grad;
  return linear(ctx, memories, w).value();
}

// The next `out` of the answers that the teacher predicts.
Tensor teacher_prediction(Context& ctx, const SetEncoderTeacher& teacher, const Tensor& memories, std::int64_t out) {
  NoGrad no_grad;
  return teacher.predict(ctx, memories).value().slice(-1, 0, out).clone();
}

// Means over steps first … last − 1 (from 0).
double mean_square_between(const Tensor& a, const Tensor& b, std::int64_t first, std::int64_t last) {
  return mean_square_difference(a.slice(1, first, last - first).clone(), b.slice(1, first, last - first).clone());
}

// The same where something is asked; NaN where nothing is.
double asked_error(const train::SequenceBatch& batch, const Tensor& prediction, std::int64_t first, std::int64_t last) {
  const std::int64_t B = batch.target.size(0), T = batch.target.size(1), out = batch.target.size(2);
  double sum = 0;
  std::int64_t count = 0;
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t t = first; t < last; ++t) {
      if (!batch.asked.data<bool>()[b * T + t]) continue;
      for (std::int64_t i = (b * T + t) * out; i < (b * T + t + 1) * out; ++i) {
        const double d =
            static_cast<double>(prediction.data<float>()[i]) - static_cast<double>(batch.target.data<float>()[i]);
        sum += d * d;
      }
      count += out;
    }
  }
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

// [first, last) of the drift's table: the window doubled again and again, then the first window and the last steps.
std::vector<std::pair<std::int64_t, std::int64_t>> drift_steps(std::int64_t window, std::int64_t length) {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;
  for (std::int64_t first = 0, last = std::min(window, length); first < length;
       first = last, last = std::min(2 * last, length)) {
    steps.emplace_back(first, last);
  }
  steps.emplace_back(0, std::min(window, length));
  steps.emplace_back(length - std::max<std::int64_t>(1, std::min(kLastSteps, length / 4)), length);
  return steps;
}

Config rows_of(const Tensor& x) {  // [T, n]
  Config::Array rows;
  for (std::int64_t t = 0; t < x.size(0); ++t) {
    Config::Array row;
    for (std::int64_t i = 0; i < x.size(1); ++i) row.push_back(finite_or_null(x.at(t * x.size(1) + i)));
    rows.emplace_back(std::move(row));
  }
  return rows;
}

Tensor first_sequence(const Tensor& x) { return x.slice(0, 0, 1).clone().reshape({x.size(1), x.size(2)}); }

Config targets_of(const train::SequenceBatch& batch) {
  const Config all = rows_of(first_sequence(batch.target));
  Config::Array rows;
  for (std::size_t t = 0; t < all.as_array("targets").size(); ++t) {
    rows.push_back(batch.asked.data<bool>()[t] ? all.as_array("targets")[t] : Config(Config::Array{}));
  }
  return rows;
}

double contraction(Context& ctx, const MemoryUpdater& cell, const train::SequenceBatch& batch, const Tensor& memories) {
  const std::int64_t T = batch.x.size(1), B = batch.x.size(0), n = cell.memory_width();
  const std::int64_t samples = std::min(
      {std::clamp(kContractionNumbers / n, std::int64_t{1}, kMostContractions), B, std::max<std::int64_t>(T - 1, 1)});
  if (T < 2) return std::numeric_limits<double>::quiet_NaN();
  const Tensor memory = Tensor::empty({samples, n}),
               tokens = Tensor::empty({samples, cell.context(), cell.token_width()});
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t t = i * (T - 1) / samples;  // the memory after token t, and the next token
    memory.slice(0, i, 1).copy_from(memories.slice(0, i, 1).slice(1, t, 1).clone().reshape({1, n}));
    tokens.slice(0, i, 1).copy_from(tokens_at(batch.x.slice(0, i, 1).clone(), t + 1, cell.context()));
  }
  return cell.contraction_estimate(ctx, memory, tokens);
}

}  // namespace

Config finite_or_null(double x) { return std::isfinite(x) ? Config(x) : Config(); }

Config rounds_report(const std::vector<RoundReport>& rounds, double variance) {
  Config::Array rows;
  std::int64_t number = 0;
  for (const RoundReport& r : rounds) {
    rows.emplace_back(Config::Object{{"round", number++},
                                     {"drift", finite_or_null(r.drift)},
                                     {"drift_over_variance", finite_or_null(r.drift / variance)},
                                     {"memory_loss", finite_or_null(r.memory_loss)},
                                     {"accepted", r.accepted},
                                     {"visited", r.visited},
                                     {"restarts", r.restarts},
                                     {"skipped", r.skipped}});
  }
  return rows;
}

Config::Object evaluate(Context& ctx, const DistillRecipe& recipe, const train::SequenceTask& task,
                        const MemoryUpdater& cell, const SetEncoderTeacher* teacher, const Tensor& first_readout) {
  const std::int64_t length = recipe.drift_length > 0 ? recipe.drift_length : 4 * recipe.length;
  const auto sample = [&](std::int64_t T) {
    return task.sample(recipe.seed, kHeldOut, 0, recipe.evaluate_sequences, T);
  };
  Config::Array drift, errors;
  double variance = std::numeric_limits<double>::quiet_NaN();

  const train::SequenceBatch batch = sample(length);
  const Tensor student = free_rollout(ctx, cell, batch.x), student_says = cell.predict(ctx, student);
  Config::Object trajectories = {{"student", rows_of(first_sequence(student))},
                                 {"student_prediction", rows_of(first_sequence(student_says))},
                                 {"target", targets_of(batch)}};
  if (teacher) {
    const Tensor memories = teacher->encode_trajectory(ctx, batch.x);
    const Tensor teacher_says = teacher_prediction(ctx, *teacher, memories, task.output_width());
    variance = mean_variance(memories);
    for (const auto& [first, last] : drift_steps(teacher->config().window, length)) {
      const double d = mean_square_between(student, memories, first, last);
      drift.emplace_back(Config::Object{{"first", first + 1},
                                        {"last", last},
                                        {"drift", finite_or_null(d)},
                                        {"over_variance", finite_or_null(d / variance)},
                                        {"student", finite_or_null(asked_error(batch, student_says, first, last))},
                                        {"teacher", finite_or_null(asked_error(batch, teacher_says, first, last))}});
    }
    trajectories.emplace_back("teacher", rows_of(first_sequence(memories)));
    trajectories.emplace_back("teacher_prediction", rows_of(first_sequence(teacher_says)));
  }

  for (const std::int64_t k : recipe.times) {
    const train::SequenceBatch held_out = sample(k * recipe.length);
    const Tensor memories = free_rollout(ctx, cell, held_out.x);
    Config::Object row = {{"times", k},
                          {"length", k * recipe.length},
                          {"sequences", recipe.evaluate_sequences},
                          {"measure", task.answer() == train::Answer::Sign ? "accuracy" : "mse"},
                          {"student", finite_or_null(score(task, held_out, cell.predict(ctx, memories)))}};
    if (first_readout.defined()) {
      row.emplace_back("student_before_refit",
                       finite_or_null(score(task, held_out, read_with(ctx, memories, first_readout))));
    }
    if (teacher) {
      const Tensor says =
          teacher_prediction(ctx, *teacher, teacher->encode_trajectory(ctx, held_out.x), task.output_width());
      row.emplace_back("teacher", finite_or_null(score(task, held_out, says)));
    }
    for (const auto& [name, value] : task.baselines(held_out)) row.emplace_back(name, finite_or_null(value));
    errors.emplace_back(std::move(row));
  }
  const Config memory = Config::Object{{"variance", finite_or_null(variance)},
                                       {"contraction", finite_or_null(contraction(ctx, cell, batch, student))}};
  return {{"memory", memory},
          {"drift", std::move(drift)},
          {"errors", std::move(errors)},
          {"trajectories", std::move(trajectories)}};
}

}  // namespace stepwell::memory
