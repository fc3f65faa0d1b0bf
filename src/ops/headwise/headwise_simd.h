// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/core/view.h"

// Square blocks so small that a vector of features holds whole ones.
namespace stepwell::ops {

// Whether blocks of p by p are so on the instruction set in use.
bool headwise_fits(std::int64_t p, float);
bool headwise_fits(std::int64_t p, double);

// Blocks p by p of `features` features, by columns: weight [p, features] holds at (i, g·p + o) entry (o, i) of block g.
template <class T>
struct HeadwiseBlocks {
  std::int64_t p, features, tokens;
  const T* x;
  std::int64_t x_stride;  // between tokens, for y too
  const T* weight;
  const T* bias;  // [features] or null
  T* y;
  std::int64_t y_stride;
};
void headwise_blocks(const HeadwiseBlocks<float>& work);
void headwise_blocks(const HeadwiseBlocks<double>& work);

// weight [p, features] as above takes the sums over the tokens.
template <class T>
struct HeadwiseSums {
  std::int64_t p, features, tokens;
  const T* grad_y;
  std::int64_t grad_stride;
  const T* x;
  std::int64_t x_stride;
  T* weight;
  std::int64_t row;  // of weight
};
void headwise_sums(const HeadwiseSums<float>& work);
void headwise_sums(const HeadwiseSums<double>& work);

}  // namespace stepwell::ops
