// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "stepwell/verify/verify.h"

#include "verify/counted_heap.h"

namespace stepwell::verify {
namespace {

Options counting_options() {
  Options options;
  options.heap_allocations = heap_allocations;
  return options;
}

void expect_all_pass(const Report& report) {
  EXPECT_TRUE(report.passed());
  for (const Check& check : report.checks()) EXPECT_EQ(check.outcome, Outcome::Pass) << Report::line(check);
}

std::vector<std::string> subject_names() {
  std::vector<std::string> names;
  for (const Subject& subject : all_subjects()) {
    if (names.empty() || names.back() != subject.name) names.push_back(subject.name);
  }
  return names;
}

class Conformance : public testing::TestWithParam<std::string> {};

TEST_P(Conformance, KeepsEveryPromise) {
  Options options = counting_options();
  options.layer = GetParam().substr(GetParam().find(' ') + 1);
  expect_all_pass(run(options));
}

INSTANTIATE_TEST_SUITE_P(Registry, Conformance, testing::ValuesIn(subject_names()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (c == ' ') c = '_';
  }
  return name;
});

TEST(Verify, UnknownLayerIsAnError) {
  Options options;
  options.layer = "mambo";
  EXPECT_THROW(run(options), Error);
}

TEST(Verify, AFolderWithoutCasesIsFoundBeforeAnyWork) {
  Options options;
  options.layer = "linear_attention";
  options.case_folders = {STEPWELL_TEST_DATA "/golden/none"};
  options.on_check = [](const Check& check) { ADD_FAILURE() << Report::line(check); };
  EXPECT_THROW(run(options), Error);
}

TEST(Cases, AllOfMambaPass) {
  Report report;
  verify_cases(STEPWELL_TEST_DATA "/golden/mamba", {}, report);
  EXPECT_EQ(report.checks().size(), 14u);  // scan and SSD, two layers, and models of three types, in two dtypes
  for (const Check& check : report.checks()) {
    EXPECT_EQ(check.outcome, Outcome::Pass) << Report::line(check);
    EXPECT_EQ(check.reason, "") << Report::line(check);
  }
}

TEST(Cases, AllOfTheGatedDeltaFamilyPass) {
  Report report;
  verify_cases(STEPWELL_TEST_DATA "/golden/gated-delta", {}, report);
  EXPECT_EQ(report.checks().size(), 12u) << "the op and five layers, in two types";
  expect_all_pass(report);
}

TEST(Cases, AllOfXlstmPass) {
  Report report;
  verify_cases(STEPWELL_TEST_DATA "/golden/xlstm", {}, report);
  EXPECT_EQ(report.checks().size(), 14u) << "two cells, two layers, a stack and models of two types, in two types";
  expect_all_pass(report);
}

TEST(Cases, AFolderWithoutCasesIsAnError) {
  Report report;
  EXPECT_THROW(verify_cases("/nonexistent", {}, report), Error);
  EXPECT_THROW(verify_cases(STEPWELL_TEST_DATA "/verify", {}, report), Error);
}

}  // namespace
}  // namespace stepwell::verify
