// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "stepwell/core/context.h"
#include "stepwell/core/tensor.h"

// Checking the tensors handed to ops, and cutting their rows into tasks.
namespace stepwell::ops {

// "F32 [2, 3]".
inline std::string described(const Tensor& t) {
  return t.defined() ? std::string(dtype_name(t.dtype())) + " " + t.shape().to_string() : "not defined";
}

inline void check_tensor(const char* where, const char* name, const Tensor& t, const Shape& shape, DType dtype) {
  STEPWELL_CHECK(t.defined() && t.shape() == shape && t.dtype() == dtype, where,
                 std::string(name) + " is " + described(t) + ", expected " + std::string(dtype_name(dtype)) + " " +
                     shape.to_string());
}

// Runs f(first, count) over the rows of an array [rows, width] in tasks of about 2¹⁴ elements: by shape alone (X3).
template <class F>
void for_row_tasks(Context& ctx, std::int64_t rows, std::int64_t width, F&& f) {
  constexpr std::int64_t kTaskElements = std::int64_t{1} << 14;
  const std::int64_t each = std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(1, width));
  ctx.parallel_for((rows + each - 1) / each,
                   [&](std::int64_t task, Arena&) { f(task * each, std::min(each, rows - task * each)); });
}

}  // namespace stepwell::ops
