// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/error.h"
#include "stepwell/layers/module.h"

namespace stepwell {

inline std::map<std::string, Tensor> parameters_of(const layers::Module& module) {
  std::map<std::string, Tensor> map;
  for (auto& [name, tensor] : module.named_parameters()) map.emplace(name, tensor);
  return map;
}

// The message of the Error that `f` throws, "no error" if it throws none.
inline std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// What a parameter must be called and how long it must be.
struct ParameterRow {
  const char* name;
  Shape shape;
  bool decay;
};
inline void expect_parameters(const layers::Module& module, const std::vector<ParameterRow>& rows) {
  std::map<std::string, const layers::Parameter*> found;
  for (const layers::Parameter* p : module.parameters()) found.emplace(p->name, p);
  EXPECT_EQ(found.size(), rows.size());
  for (const ParameterRow& row : rows) {
    ASSERT_TRUE(found.contains(row.name)) << row.name;
    EXPECT_EQ(found[row.name]->value.shape(), row.shape) << row.name;
    EXPECT_EQ(found[row.name]->decay, row.decay) << row.name;
  }
}

// First step sizes, softplus of `bias`: log-uniform in [0.001, 0.1] and distinct. 4,096 of them.
inline void expect_log_uniform_steps(const Tensor& bias) {
  ASSERT_EQ(bias.numel(), 4096);
  std::vector<double> steps;
  for (std::int64_t i = 0; i < bias.numel(); ++i) steps.push_back(std::log1p(std::exp(bias.at(i))));
  std::sort(steps.begin(), steps.end());
  EXPECT_GE(steps.front(), 1e-3 * (1 - 1e-6));
  EXPECT_LE(steps.back(), 0.1 * (1 + 1e-6));
  EXPECT_NEAR(steps[2048], 0.01, 0.15 * 0.01);
  EXPECT_NEAR(steps[410], 1.58e-3, 0.15 * 1.58e-3);
  EXPECT_NEAR(steps[3686], 6.3e-2, 0.15 * 6.3e-2);
  EXPECT_GT(std::unique(steps.begin(), steps.end()) - steps.begin(), 4090);
}

}  // namespace stepwell
