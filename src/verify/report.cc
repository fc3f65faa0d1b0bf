// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/verify/report.h"

#include <fmt/format.h>

namespace stepwell::verify {

namespace {

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::Pass: return "PASS";
    case Outcome::Fail: return "FAIL";
    case Outcome::NotRun: return "NOT RUN";
  }
  return "?";
}

constexpr std::string_view kLine = "{:<28} {:<26} {:<8} {}";

}  // namespace

void Report::add(Check check) { checks_.push_back(std::move(check)); }

std::int64_t Report::count(Outcome outcome) const {
  std::int64_t n = 0;
  for (const Check& c : checks_) n += c.outcome == outcome;
  return n;
}

bool Report::passed() const { return count(Outcome::Fail) == 0 && count(Outcome::Pass) > 0; }

std::string Report::header() {
  return fmt::format(fmt::runtime(kLine), "subject", "promise", "result", "worst figure");
}

std::string Report::line(const Check& c) {
  std::string text = c.figure;
  if (!c.reason.empty()) text += (text.empty() ? "" : "; ") + c.reason;
  return fmt::format(fmt::runtime(kLine), c.subject, c.promise, outcome_name(c.outcome), text);
}

std::string Report::summary() const {
  return fmt::format("{} passed, {} failed, {} not run", count(Outcome::Pass), count(Outcome::Fail),
                     count(Outcome::NotRun));
}

Config Report::to_config() const {
  Config::Array rows;
  for (const Check& c : checks_) {
    Config row;
    row.set("subject", c.subject);
    row.set("promise", c.promise);
    row.set("result", std::string(outcome_name(c.outcome)));
    row.set("figure", c.figure);
    row.set("reason", c.reason);
    row.set("compared", c.compared);
    rows.push_back(std::move(row));
  }
  Config config;
  config.set("checks", std::move(rows));
  config.set("passed", count(Outcome::Pass));
  config.set("failed", count(Outcome::Fail));
  config.set("not_run", count(Outcome::NotRun));
  return config;
}

}  // namespace stepwell::verify
