// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "stepwell/train/sequence_task.h"

// What the tasks by name have in common.
namespace stepwell::train {

// Throws Error (Argument) for count < 0, and for a length below `shortest`.
void check_sizes(std::int64_t count, std::int64_t length, std::int64_t shortest = 1);

// Tensors of a batch: x and target 0, nothing asked, no event.
SequenceBatch empty_batch(std::int64_t count, std::int64_t length, std::int64_t in, std::int64_t out);

// A batch of series from values [count, length + 1, width]: token t and, to be predicted, token t + 1.
SequenceBatch series_batch(std::span<const float> values, std::int64_t count, std::int64_t length, std::int64_t width);

// Mean square error over asked tokens t ≥ from of a predictor that sees token after token. make() gives a fresh one for
// each sequence; its next(x, prediction) takes a token and writes what it predicts.
template <class Make>
double prediction_error(const SequenceBatch& batch, std::int64_t from, const Make& make) {
  const std::int64_t count = batch.x.size(0), length = batch.x.size(1);
  const auto in = static_cast<std::size_t>(batch.x.size(2)), out = static_cast<std::size_t>(batch.target.size(2));
  const float *x = batch.x.data<float>(), *target = batch.target.data<float>();
  const bool* asked = batch.asked.data<bool>();
  std::vector<double> prediction(out);
  double squares = 0;
  std::int64_t values = 0;
  for (std::int64_t row = 0; row < count; ++row) {
    auto predictor = make();
    for (std::int64_t t = 0; t < length; ++t, x += in, target += out, ++asked) {
      predictor.next(std::span(x, in), std::span(prediction));
      if (t < from || !*asked) continue;
      for (std::size_t i = 0; i < out; ++i) {
        const double error = prediction[i] - static_cast<double>(target[i]);
        squares += error * error;
      }
      values += static_cast<std::int64_t>(out);
    }
  }
  return squares / static_cast<double>(values);
}

// Mean square errors of predicting every next value by the value before, and by an exponential average that starts at
// the first value, the best of the rates 0.01, 0.02, … 0.99 for this batch.
double persistence(const SequenceBatch& batch, std::int64_t from);
double best_exponential_average(const SequenceBatch& batch, std::int64_t from);

std::unique_ptr<SequenceTask> make_regimes(const Config& options);
std::unique_ptr<SequenceTask> make_oscillators(const Config& options);
std::unique_ptr<SequenceTask> make_needle(const Config& options);
std::unique_ptr<SequenceTask> make_needle_distractors(const Config& options);
std::unique_ptr<SequenceTask> make_copy(const Config& options);
std::unique_ptr<SequenceTask> make_parity(const Config& options);

}  // namespace stepwell::train
