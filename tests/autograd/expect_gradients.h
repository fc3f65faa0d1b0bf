// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/autograd/functions.h"
#include "stepwell/autograd/gradcheck.h"

#include "tests/autograd/random_tensor.h"

namespace stepwell {

using Variables = std::vector<Variable>;

// Gradients of f against finite differences; `checked` elements at least must have been compared.
inline void expect_gradients(const std::function<Variables(Context&, const Variables&)>& f,
                             const std::vector<GradcheckInput>& inputs, std::int64_t checked = 1) {
  Context ctx = Context::serial();
  const GradcheckResult result = gradcheck(ctx, [&](const Variables& v) { return f(ctx, v); }, inputs);
  EXPECT_TRUE(result.passed) << result.to_string();
  EXPECT_GE(result.checked, checked) << result.to_string();
}

// Equal to 1e-13 of the largest entry.
inline void expect_close(const Tensor& got, const Tensor& expected) {
  ASSERT_EQ(got.shape(), expected.shape());
  double largest = 0;
  for (std::int64_t i = 0; i < expected.numel(); ++i) largest = std::max(largest, std::fabs(expected.at(i)));
  for (std::int64_t i = 0; i < expected.numel(); ++i) EXPECT_NEAR(got.at(i), expected.at(i), 1e-13 * largest) << i;
}

// Every output and gradient of f has the same bits for 1, 2 and 4 threads as on a serial context, recorded or not, in
// F32 and F64 (inputs are given in F64).
inline void expect_same_bits(const std::function<Variables(Context&, const Variables&)>& f,
                             const std::vector<Tensor>& inputs) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    const auto run = [&](Context ctx) {
      Variables leaves;
      for (const Tensor& t : inputs) leaves.push_back(Variable::leaf(t.to(dtype).clone()));
      const Variables outputs = f(ctx, leaves);
      std::vector<Tensor> results, cotangents;
      for (const Variable& v : outputs) {
        results.push_back(v.value());
        cotangents.push_back(random_tensor(v.shape(), 100 + results.size(), -1, 1, dtype));
      }
      const Gradients g = backward(ctx, outputs, cotangents);
      for (const Variable& leaf : leaves) results.push_back(g.of(leaf));
      NoGrad no_grad;
      for (const Variable& v : f(ctx, leaves)) results.push_back(v.value());
      return results;
    };
    const std::vector<Tensor> expected = run(Context::serial());
    const std::size_t outputs = (expected.size() - inputs.size()) / 2;
    for (std::size_t i = 0; i < outputs; ++i) {
      EXPECT_TRUE(expected[i].same_bits(expected[expected.size() - outputs + i])) << "output " << i << " unrecorded";
    }
    for (const int threads : {1, 2, 4}) {
      const std::vector<Tensor> got = run(Context::parallel(threads));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(got[i].same_bits(expected[i])) << "result " << i << ", threads " << threads;
      }
    }
  }
}

// The message of the Error that `f` throws, or "" if it throws none.
inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace stepwell
