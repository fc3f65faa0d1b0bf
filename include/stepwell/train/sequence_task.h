// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "stepwell/core/config.h"
#include "stepwell/core/tensor.h"
#include "stepwell/train/task.h"

namespace stepwell::train {

// Sequences of vectors, and what is asked of a predictor after each token.
struct SequenceBatch {
  Tensor x;       // F32 [B, T, in]: the tokens
  Tensor target;  // F32 [B, T, out]: what to predict after token t (a series: token t + 1); 0 where nothing is asked
  Tensor asked;   // Bool [B, T]: whether anything is asked after token t (needle: after the last one alone)
  Tensor event;   // I64 [B]: the token that decides the answer (needle), −1 where there is no such token
};

enum class Answer { Value, Sign };  // judged by mean square error, or by the share of right signs (targets are ±1)

// A source of sequences without end, by name: regimes, oscillators, needle, needle_distractors, copy, parity. What is
// predicted has the units of the first output_width() entries of a token.
class SequenceTask {
 public:
  virtual ~SequenceTask() = default;
  virtual std::int64_t input_width() const = 0;
  virtual std::int64_t output_width() const = 0;  // ≤ input_width()
  virtual Answer answer() const = 0;
  virtual Config config() const = 0;  // every option
  // Sequences number first … first + count − 1 of the set called `purpose` ("train", "held-out"), each decided by
  // (seed, purpose, number, length) alone: the same on every machine and for every thread count. length ≥ 1 (copy: 2);
  // throws Error (Argument) for less.
  virtual SequenceBatch sample(std::int64_t seed, std::string_view purpose, std::int64_t first, std::int64_t count,
                               std::int64_t length) const = 0;
  // What predictors without training reach on `batch`, over asked tokens with tokens below `from` left out: mean square
  // errors of "persistence", "best_exponential_average" and "bayes_filter", or the share of right signs by "chance".
  virtual Figures baselines(const SequenceBatch& batch, std::int64_t from = 0) const = 0;
};

struct SequenceTaskRow {
  std::string_view name, summary;
  std::unique_ptr<SequenceTask> (*make)(const Config& options);  // unknown keys throw
};
std::span<const SequenceTaskRow> sequence_tasks();
// Throws Error (Config) for an unknown name, naming the nearest, and for unknown options.
std::unique_ptr<SequenceTask> make_sequence_task(std::string_view name, const Config& options = {});

// The figure of `prediction` (F32 [B, T, out]) on asked tokens t ≥ from: mean square error, or share of right signs (0
// and NaN have none). Throws Error (Argument) for another shape, and where nothing is asked.
double score(const SequenceTask& task, const SequenceBatch& batch, const Tensor& prediction, std::int64_t from = 0);

}  // namespace stepwell::train
