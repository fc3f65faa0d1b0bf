// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/memory/recipe.h"

// A run of a moment: 10 steps of the teacher (mode frozen), 10 more of either mode, then 3 rounds of 5.
namespace stepwell::memory {

inline DistillRecipe small_distillation(const char* mode) {
  Config config;
  config.set_path("task.name", "oscillators");
  config.set_path("task.length", 20);
  config.set_path("teacher.window", 6);
  config.set_path("teacher.embed_width", 8);
  config.set_path("teacher.recency", true);
  config.set_path("teacher.bound", "tanh");
  config.set_path("cell.memory_width", 6);
  config.set_path("train.mode", mode);
  config.set_path("train.teacher_steps", 10);
  config.set_path("train.steps", 10);
  config.set_path("train.batch", 16);
  config.set_path("train.save_every", 7);
  config.set_path("imitation.rounds", 3);
  config.set_path("imitation.steps", 5);
  config.set_path("imitation.sequences", 8);
  config.set_path("imitation.validation_sequences", 8);
  config.set_path("imitation.capacity", 300);
  config.set_path("imitation.beta", 0.5);
  config.set_path("imitation.patience", 0);
  config.set_path("evaluate.sequences", 8);
  config.set_path("evaluate.times", Config::Array{1, 2});
  config.set_path("evaluate.drift_length", 40);
  return DistillRecipe::read(config);
}

}  // namespace stepwell::memory
