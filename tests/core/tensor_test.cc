// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/tensor.h"

#include <gtest/gtest.h>

#include "stepwell/autograd/variable.h"
#include "stepwell/ops/elementwise.h"
#include "stepwell/simd/isa.h"

namespace stepwell {
namespace {

TEST(Tensor, AddGivesTheSameBitsOnEveryInstructionSet) {
  const auto best = simd::current_isa();
  for (const auto isa : simd::supported_isas()) {
    simd::set_isa(isa);
    Context ctx = Context::serial();
    const Tensor a = Tensor::full({37}, 1.5), b = Tensor::full({37}, 0.25), c = Tensor::empty({37});
    ops::add(ctx, a, b, c);
    for (int i = 0; i < 37; ++i) EXPECT_EQ(c.at(i), 1.75) << simd::isa_name(isa);
  }
  simd::set_isa(best);
}

TEST(Tensor, ReshapesASliceIntoRows) {
  const Tensor t = Tensor::zeros({2, 3, 8});
  const Tensor part = t.slice(-1, 2, 4);
  EXPECT_FALSE(part.is_contiguous());
  const auto rows = part.rows<float>();
  EXPECT_EQ(rows.extent[0], 6);
  EXPECT_EQ(rows.stride[0], 8);
}

}  // namespace
}  // namespace stepwell
