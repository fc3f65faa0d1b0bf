// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "stepwell/autograd/variable.h"
#include "stepwell/core/segments.h"

// What the differentiable functions ask of their arguments. Nothing here allocates unless a check fails.
namespace stepwell::autograd {

// "F32 [2, 3]", or "undefined".
std::string describe(const Tensor& t);
inline std::string describe(const Variable& v) { return describe(v.value()); }

// Defined, F32 or F64.
void check_float(const char* where, const char* name, const Variable& v);
// Of the dtype of `first`, which is called `first_name`; undefined passes.
void check_dtype(const char* where, const char* name, const Variable& v, const char* first_name, const Variable& first);
// Of this shape; undefined passes.
void check_shape(const char* where, const char* name, const Tensor& t, const Shape& expected);
// As many rows as the segments have tokens.
void check_tokens(const char* where, const Variable& x, const Segments& segments);
// I64, contiguous after the call, every entry in [0, n); `what` names an entry ("id"). Returns the contiguous tensor.
Tensor check_index(Context& ctx, const char* where, const char* what, const Tensor& index, std::int64_t n);

// `shape` with another last extent.
Shape with_last(const Shape& shape, std::int64_t last);

// The tensor itself if its leading dimensions fold into evenly spaced rows, or else a contiguous copy.
Tensor foldable(Context& ctx, const Tensor& t);

// A state to write the next one into: zeros if undefined; the incoming memory itself if nobody else holds it (a
// function that records does, for its adjoint); otherwise a copy.
Tensor writable_state(Context& ctx, Variable&& state, const Shape& shape, DType dtype);

}  // namespace stepwell::autograd
