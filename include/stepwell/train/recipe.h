// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepwell/core/config.h"
#include "stepwell/train/adam.h"
#include "stepwell/train/schedule.h"

namespace stepwell::train {

// All that decides the numbers of a training run. What does not (threads, folders to write to) is not in it.
struct Recipe {
  // [data]: a text, a series, or a task by name.
  std::vector<std::string> text;  // files and folders
  std::string csv, column;        // a CSV file and the name of its column
  std::string hold_out;           // files whose name matches are held out (text); "" = the last part of the data is:
  double hold_out_fraction = 0.1;
  std::string task;  // one of sequence_tasks()
  Config task_options;
  std::int64_t held_out = 256;  // sequences to judge by (task)

  // [model]: options of models::make_model. The data decide the type unless one is given (text: "xlstm",
  // "xlstm_large").
  Config model;

  // [train]
  std::int64_t steps = 1000;    // optimiser steps
  std::int64_t batch = 16;      // sequences per pass through the model
  std::int64_t accumulate = 1;  // passes per step
  std::int64_t length = 256;    // tokens per sequence
  std::int64_t seed = 0;
  Schedule schedule{.peak = 3e-3, .warmup = 20, .decay = Decay::Cosine};  // .steps is set to `steps`
  AdamOptions adam{.weight_decay = 0.01, .clip_norm = 1};
  std::int64_t evaluate_every = 0;  // steps between evaluations; 0: at the end only
  std::int64_t evaluate_most = 0;   // held-out tokens looked at by evaluations before the last; 0: all
  std::int64_t save_every = 100;    // steps between checkpoints; there is always one at the end

  // From the sections data, model and train of a recipe file. Unknown keys, values out of range and a recipe with no
  // data or several kinds of it throw Error (Config).
  static Recipe read(const Config& config);
  // What read() takes, complete; the paths of data absolute, so that it means the same in every folder.
  Config to_config() const;
};

}  // namespace stepwell::train
