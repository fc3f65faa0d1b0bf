// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/train/sequence_task.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "stepwell/core/error.h"

#include "train/sequence_baselines.h"

namespace stepwell::train {

namespace {

constexpr SequenceTaskRow kRows[] = {
    {"regimes", "a level that jumps, seen through noise: predict the next value", make_regimes},
    {"oscillators", "three noisy oscillators: predict their next values", make_oscillators},
    {"needle", "one flagged token carries a sign: report it at the end", make_needle},
    {"needle_distractors", "the same where every token carries a sign", make_needle_distractors},
    {"copy", "repeat the first half of the sequence", make_copy},
    {"parity", "say after every token whether the minus signs so far are even in number", make_parity},
};

struct Exponential {
  double rate;
  std::vector<double> average;

  void next(std::span<const float> x, std::span<double> prediction) {
    const bool first = average.empty();
    if (first) average.assign(x.begin(), x.end());
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      if (!first) average[i] += rate * (static_cast<double>(x[i]) - average[i]);
      prediction[i] = average[i];
    }
  }
};

struct Persistence {
  void next(std::span<const float> x, std::span<double> prediction) {
    std::copy_n(x.begin(), prediction.size(), prediction.begin());
  }
};

}  // namespace

void check_sizes(std::int64_t count, std::int64_t length, std::int64_t shortest) {
  STEPWELL_CHECK(count >= 0 && length >= shortest, "task",
                 std::to_string(count) + " sequences of length " + std::to_string(length) +
                     ", expected a length of at least " + std::to_string(shortest));
}

SequenceBatch empty_batch(std::int64_t count, std::int64_t length, std::int64_t in, std::int64_t out) {
  return {Tensor::zeros({count, length, in}), Tensor::zeros({count, length, out}),
          Tensor::zeros({count, length}, DType::Bool), Tensor::full({count}, -1, DType::I64)};
}

SequenceBatch series_batch(std::span<const float> values, std::int64_t count, std::int64_t length, std::int64_t width) {
  SequenceBatch batch = empty_batch(count, length, width, width);
  batch.asked.fill(1);
  for (std::int64_t row = 0; row < count; ++row) {
    const float* from = values.data() + row * (length + 1) * width;
    std::copy_n(from, length * width, batch.x.data<float>() + row * length * width);
    std::copy_n(from + width, length * width, batch.target.data<float>() + row * length * width);
  }
  return batch;
}

double persistence(const SequenceBatch& batch, std::int64_t from) {
  return prediction_error(batch, from, [] { return Persistence{}; });
}

double best_exponential_average(const SequenceBatch& batch, std::int64_t from) {
  double best = std::numeric_limits<double>::infinity();
  for (int percent = 1; percent < 100; ++percent) {
    best = std::min(best, prediction_error(batch, from, [percent] { return Exponential{percent / 100.0, {}}; }));
  }
  return best;
}

std::span<const SequenceTaskRow> sequence_tasks() { return kRows; }

std::unique_ptr<SequenceTask> make_sequence_task(std::string_view name, const Config& options) {
  std::vector<std::string> names;
  std::string list;
  for (const SequenceTaskRow& row : kRows) {
    if (row.name == name) return row.make(options);
    names.emplace_back(row.name);
    list += (list.empty() ? "" : ", ") + names.back();
  }
  const std::string_view near = nearest_name(name, names);
  fail(ErrorCode::Config, "task",
       "no task " + std::string(name) +
           (near.empty() ? "; there are " + list : ", did you mean " + std::string(near) + "? There are " + list));
}

double score(const SequenceTask& task, const SequenceBatch& batch, const Tensor& prediction, std::int64_t from) {
  STEPWELL_CHECK(prediction.defined() && prediction.dtype() == DType::F32 && prediction.is_contiguous() &&
                     prediction.shape() == batch.target.shape(),
                 "score",
                 "prediction " + (prediction.defined() ? prediction.shape().to_string() : std::string("undefined")) +
                     ", expected F32 " + batch.target.shape().to_string());
  const std::int64_t count = batch.target.size(0), length = batch.target.size(1), out = batch.target.size(2);
  double total = 0;
  std::int64_t values = 0;
  for (std::int64_t token = 0; token < count * length; ++token) {
    if (token % length < from || !batch.asked.data<bool>()[token]) continue;
    for (std::int64_t i = token * out; i < (token + 1) * out; ++i) {
      const double said = prediction.data<float>()[i], right = batch.target.data<float>()[i];
      total += task.answer() == Answer::Value ? (said - right) * (said - right) : (said * right > 0 ? 1 : 0);
    }
    values += out;
  }
  STEPWELL_CHECK(values > 0, "score", "nothing is asked from token " + std::to_string(from) + " on");
  return total / static_cast<double>(values);
}

}  // namespace stepwell::train
