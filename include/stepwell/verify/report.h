// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepwell/core/config.h"

namespace stepwell::verify {

enum class Outcome { Pass, Fail, NotRun };

// One line of a report: one promise about one subject.
struct Check {
  std::string subject;  // "layer mamba", "op selective_scan", "cases mamba"
  std::string promise;  // "X1 splits", "gradients", …
  Outcome outcome = Outcome::NotRun;
  std::string figure;         // the worst figure measured, with its bound and place
  std::string reason;         // why it failed or was not run
  std::int64_t compared = 0;  // values compared; a check that compared nothing is NOT RUN
};

// What verify measured on this machine. NOT RUN is not PASS.
class Report {
 public:
  void add(Check check);
  const std::vector<Check>& checks() const { return checks_; }
  std::int64_t count(Outcome outcome) const;
  // True if something ran and nothing failed.
  bool passed() const;

  static std::string header();                  // column titles
  static std::string line(const Check& check);  // one aligned line
  std::string summary() const;                  // "78 passed, 0 failed, 3 not run"
  Config to_config() const;                     // for --json

 private:
  std::vector<Check> checks_;
};

}  // namespace stepwell::verify
