// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/core/rng.h"
#include "stepwell/io/safetensors.h"
#include "stepwell/verify/verify.h"

namespace stepwell::verify {
namespace {

using Tensors = std::vector<std::pair<std::string, Tensor>>;

Tensors inputs() {
  const Rng rng(5);
  Tensors tensors;
  for (const char* name : {"q", "k", "v"}) tensors.emplace_back(name, rng.stream(name).normal({2, 70, 3, 8}, 0, 0.3));
  tensors.emplace_back("g", rng.stream("g").uniform({2, 70, 3}, -2, 0));
  tensors.emplace_back("beta", rng.stream("beta").uniform({2, 70, 3}, 0, 1));
  return tensors;
}

Report check(const Tensors& tensors, const io::Metadata& metadata = {}) {
  const std::string path = ::testing::TempDir() + "/verify_inputs.safetensors";
  io::write_safetensors(path, tensors, metadata);
  Report report;
  verify_inputs(path, 16, {}, report);
  return report;
}

TEST(VerifyInputs, PassesOnTensorsThatFit) {
  const Report report = check(inputs(), {{"config", R"({"l2norm": true})"}});
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.checks().size(), 4u);  // o and final_state of two forms
}

TEST(VerifyInputs, FindsWhereAFormLeavesTheReference) {
  Tensors tensors = inputs();
  tensors[2].second.data<float>()[(40 * 3 + 1) * 8 + 5] = std::numeric_limits<float>::max();  // v of row 0, token 40
  tensors[1].second.slice(1, 40, 1).fill(100);
  const Report report = check(tensors);
  EXPECT_FALSE(report.passed());
  EXPECT_NE(report.checks()[0].figure.find("head 1, column 5"), std::string::npos) << report.checks()[0].figure;
}

TEST(VerifyInputs, SaysWhatIsMissingOrDoesNotFit) {
  Tensors tensors = inputs();
  tensors.erase(tensors.begin());
  EXPECT_THROW(check(tensors), Error);
  tensors = inputs();
  tensors[1].second = Tensor::zeros({2, 70, 3, 9});
  EXPECT_THROW(check(tensors), Error);
  tensors = inputs();
  tensors.emplace_back("cu_seqlens", Tensor::zeros({3}, DType::I64));
  EXPECT_THROW(check(tensors), Error);
}

std::string message_of(const Tensors& tensors, const io::Metadata& metadata = {}) {
  try {
    check(tensors, metadata);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(VerifyInputs, NothingIsLeftOutInSilence) {
  Tensors tensors = inputs();
  tensors[4].first = "betas";
  EXPECT_NE(message_of(tensors).find("unknown tensor betas, expected q, k, v"), std::string::npos);
  tensors = inputs();
  tensors.emplace_back("b", tensors[4].second);
  EXPECT_NE(message_of(tensors).find("beta beside b or w"), std::string::npos);
  EXPECT_NE(message_of(inputs(), {{"config", R"({"l2_norm": true})"}}).find("did you mean l2norm"), std::string::npos);
}

TEST(VerifyInputs, NumbersThatAreNotFiniteAreNoCheck) {
  for (const std::size_t i : {0, 3}) {
    Tensors tensors = inputs();
    tensors[i].second.data<float>()[7] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_NE(message_of(tensors).find(tensors[i].first + " has nan at element 7"), std::string::npos);
  }
  Tensors tensors = inputs();
  tensors[3].second.data<float>()[7] = -std::numeric_limits<float>::infinity();  // g: a reset
  EXPECT_TRUE(check(tensors).passed());
}

}  // namespace
}  // namespace stepwell::verify
