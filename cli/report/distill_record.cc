// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/report/distill_record.h"

#include <cmath>
#include <utility>

#include "stepwell/core/error.h"
#include "stepwell/io/file.h"
#include "stepwell/io/json.h"
#include "stepwell/memory/report.h"

#include "cli/report/run_record.h"

namespace stepwell::cli {

namespace {

std::string report_file(const std::string& path) { return io::join_path(path, memory::kReportFile); }

double number_in(const Config& object, const char* key) {
  const Config* value = object.find(key);
  return value && value->is_number() ? value->as_double(key) : std::nan("");
}

std::string text_in(const Config& object, const char* key) {
  const Config* value = object.find(key);
  return value && value->is_string() ? value->as_string(key) : "";
}

// The member, or an empty object or list.
Config member(const Config& object, const char* key) {
  const Config* value = object.find(key);
  return value ? *value : Config();
}

[[noreturn]] void malformed(const char* key, const char* expected) {
  fail(ErrorCode::File, memory::kReportFile, std::string(key) + " does not hold " + expected);
}

Config::Array list_in(const Config& object, const char* key) {
  const Config* value = object.find(key);
  return value && value->is_array() ? value->as_array(key) : Config::Array();
}

Config::Array objects_in(const Config& object, const char* key) {
  Config::Array list = list_in(object, key);
  for (const Config& value : list) {
    if (!value.is_object()) malformed(key, "objects alone");
  }
  return list;
}

DistillRecord::Rows rows_in(const Config& object, const char* key) {
  DistillRecord::Rows rows;
  for (const Config& row : list_in(object, key)) {
    std::vector<double>& numbers = rows.emplace_back();
    if (!row.is_array()) malformed(key, "lists alone");
    for (const Config& value : row.as_array(key))
      numbers.push_back(value.is_number() ? value.as_double(key) : std::nan(""));
  }
  return rows;
}

void read_losses(const Config& report, DistillRecord& run) {
  for (const Config& line : objects_in(report, "losses")) {
    const std::string name = text_in(line, "phase");
    if (run.phases.empty() || run.phases.back().name != name) run.phases.push_back({name, {}, {}});
    DistillRecord::Phase& phase = run.phases.back();
    const std::size_t before = phase.step.size();
    phase.step.push_back(number_in(line, "step"));
    for (const auto& [key, value] : line.as_object("losses")) {
      if (key == "step" || key == "phase") continue;
      std::vector<double>& part = phase.parts[key];
      part.resize(before, std::nan(""));
      part.push_back(number_in(line, key.c_str()));
    }
    for (auto& [key, part] : phase.parts) part.resize(before + 1, std::nan(""));
  }
}

void read_errors(const Config& report, DistillRecord& run) {
  for (const Config& line : objects_in(report, "errors")) {
    DistillRecord::Errors errors{number_in(line, "times"),
                                 number_in(line, "length"),
                                 number_in(line, "sequences"),
                                 text_in(line, "measure"),
                                 {}};
    for (const auto& [key, value] : line.as_object("errors")) {
      const bool figure = key != "times" && key != "length" && key != "sequences" && key != "measure";
      if (figure && value.is_number()) errors.figures.emplace_back(key, value.as_double(key));
    }
    run.errors.push_back(std::move(errors));
  }
}

}  // namespace

bool is_distillation(const std::string& path) { return io::file_exists(report_file(path)); }

DistillRecord read_distillation(const std::string& path) {
  const std::string file = report_file(path);
  const Config report = io::read_json(file);
  if (text_in(report, "format") != memory::kReportFormat) {
    fail(ErrorCode::File, "report",
         file + " has format \"" + text_in(report, "format") + "\", expected " + memory::kReportFormat);
  }
  DistillRecord run;
  run.path = path;
  run.name = folder_name(path);
  run.recipe = member(report, "recipe");
  const Config task = member(report, "task"), cell = member(report, "cell"), memory = member(report, "memory");
  run.task = text_in(task, "name");
  run.answer = text_in(task, "answer");
  run.length = number_in(task, "length");
  run.cell = text_in(cell, "type");
  run.memory_width = number_in(cell, "memory_width");
  run.parameters = number_in(cell, "parameters");
  run.mode = text_in(member(run.recipe, "train"), "mode");
  run.steps = number_in(report, "steps");
  run.variance = number_in(memory, "variance");
  run.contraction = number_in(memory, "contraction");
  read_losses(report, run);
  for (const Config& line : objects_in(report, "rounds")) {
    const Config* accepted = line.find("accepted");
    run.rounds.push_back({number_in(line, "round"), number_in(line, "drift"), number_in(line, "memory_loss"),
                          number_in(line, "visited"), number_in(line, "restarts"), number_in(line, "skipped"),
                          accepted && accepted->is_bool() && accepted->as_bool(file)});
  }
  for (const Config& line : objects_in(report, "drift")) {
    run.drift.push_back({number_in(line, "first"), number_in(line, "last"), number_in(line, "drift"),
                         number_in(line, "over_variance"), number_in(line, "student"), number_in(line, "teacher")});
  }
  read_errors(report, run);
  const Config trajectories = member(report, "trajectories");
  run.teacher = rows_in(trajectories, "teacher");
  run.student = rows_in(trajectories, "student");
  run.target = rows_in(trajectories, "target");
  run.teacher_prediction = rows_in(trajectories, "teacher_prediction");
  run.student_prediction = rows_in(trajectories, "student_prediction");
  return run;
}

}  // namespace stepwell::cli
