// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/simd/isa.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "stepwell/core/context.h"
#include "stepwell/core/error.h"

namespace stepwell::simd {
namespace {

TEST(Isa, ScalarIsAlwaysThereAndLast) {
  const auto isas = supported_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.back(), Isa::Scalar);
  EXPECT_EQ(std::count(isas.begin(), isas.end(), Isa::Scalar), 1);
}

TEST(Isa, SetIsaSwitchesAndCurrentIsaTells) {
  const Isa before = current_isa();
  for (const Isa isa : supported_isas()) {
    set_isa(isa);
    EXPECT_EQ(current_isa(), isa);
  }
  set_isa(before);
  EXPECT_EQ(current_isa(), before);
}

TEST(Isa, AMissingInstructionSetIsAnErrorThatChangesNothing) {
  const Isa before = current_isa();
  const auto isas = supported_isas();
  for (const Isa isa : {Isa::Sse4, Isa::Avx2, Isa::Avx3, Isa::Neon}) {
    if (std::find(isas.begin(), isas.end(), isa) != isas.end()) continue;
    EXPECT_THROW(set_isa(isa), Error) << isa_name(isa);
    EXPECT_EQ(current_isa(), before);
  }
}

TEST(Isa, NamesAreThoseOfTheEnvironmentVariable) {
  EXPECT_EQ(isa_name(Isa::Scalar), "scalar");
  EXPECT_EQ(isa_name(Isa::Sse4), "sse4");
  EXPECT_EQ(isa_name(Isa::Avx2), "avx2");
  EXPECT_EQ(isa_name(Isa::Avx3), "avx3");
  EXPECT_EQ(isa_name(Isa::Neon), "neon");
}

TEST(Isa, OnlySse4RoundsAMultiplyAddTwice) {
  EXPECT_FALSE(has_fma(Isa::Sse4));
  for (const Isa isa : {Isa::Scalar, Isa::Avx2, Isa::Avx3, Isa::Neon}) EXPECT_TRUE(has_fma(isa)) << isa_name(isa);
}

// Ends the process: with 0 if a context cannot be had without an instruction set.
[[noreturn]] void make_context_and_exit() {
  setenv("STEPWELL_ISA", "nonsense", 1);
  try {
    Context::serial();
  } catch (const Error& error) {
    std::_Exit(std::string(error.what()).find("nonsense") == std::string::npos ? 2 : 0);
  }
  std::_Exit(1);
}

// Whoever has a context has the kernels' tables set up: no first call chooses. In a process where nothing ran before.
TEST(FieldReport, P50_TheInstructionSetIsChosenWithTheFirstContext) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(make_context_and_exit(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace stepwell::simd
