// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "stepwell/core/config.h"

namespace stepwell::cli {

// report.json of a run of `stepwell distill` (stepwell/memory/report.h says what is in it). Numbers that are not there
// are NaN.
struct DistillRecord {
  std::string path, name;
  Config recipe;
  std::string task, answer, cell, mode;
  double length = 0, memory_width = 0, parameters = 0, steps = 0, variance = 0, contraction = 0;
  struct Phase {
    std::string name;
    std::vector<double> step;
    std::map<std::string, std::vector<double>> parts;  // "loss" and what it is made of
  };
  std::vector<Phase> phases;
  struct Round {
    double round, drift, memory_loss, visited, restarts, skipped;
    bool accepted;
  };
  std::vector<Round> rounds;
  struct Drift {
    double first, last, drift, over_variance, student, teacher;
  };
  std::vector<Drift> drift;  // the last two: the first window's steps, the last steps
  struct Errors {
    double times, length, sequences;
    std::string measure;
    std::vector<std::pair<std::string, double>> figures;  // student, teacher, baselines … as far as they are known
  };
  std::vector<Errors> errors;
  using Rows = std::vector<std::vector<double>>;  // by token; a row may be empty
  Rows teacher, student, target, teacher_prediction, student_prediction;
};

// Whether the folder holds the report of a distillation.
bool is_distillation(const std::string& path);

// Throws Error (File) for a report of another format or shape.
DistillRecord read_distillation(const std::string& path);

}  // namespace stepwell::cli
