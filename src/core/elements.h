// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/core/dtype.h"

// Elements of any dtype, one by one and in bulk.
namespace stepwell {

bool is_floating(DType dtype) noexcept;

// Element i of an array as double and back: exact where both types hold the value, otherwise to nearest, ties to even.
// An integer that does not fit (a NaN included) is an Error.
double read_element(const void* data, DType dtype, std::int64_t i);
void write_element(void* data, DType dtype, std::int64_t i, double x);

// to[0 … n−1] = from[0 … n−1], both floating point or both integer; rounding and errors as above.
void convert_elements(const void* from, DType from_type, void* to, DType to_type, std::int64_t n);

}  // namespace stepwell
