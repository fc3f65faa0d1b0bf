// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "autograd/arguments.h"

#include <utility>

namespace stepwell::autograd {

std::string describe(const Tensor& t) {
  if (!t.defined()) return "undefined";
  return std::string(dtype_name(t.dtype())) + " " + t.shape().to_string();
}

void check_float(const char* where, const char* name, const Variable& v) {
  STEPWELL_CHECK(v.defined() && (v.dtype() == DType::F32 || v.dtype() == DType::F64), where,
                 std::string(name) + " is " + describe(v) + ", expected F32 or F64");
}

void check_dtype(const char* where, const char* name, const Variable& v, const char* first_name,
                 const Variable& first) {
  STEPWELL_CHECK(!v.defined() || v.dtype() == first.dtype(), where,
                 std::string(name) + " is " + describe(v) + ", " + first_name + " is " + describe(first) +
                     "; expected the same dtype");
}

void check_shape(const char* where, const char* name, const Tensor& t, const Shape& expected) {
  STEPWELL_CHECK(!t.defined() || t.shape() == expected, where,
                 std::string(name) + " is " + t.shape().to_string() + ", expected " + expected.to_string());
}

void check_tokens(const char* where, const Variable& x, const Segments& segments) {
  STEPWELL_CHECK(x.size(0) == segments.tokens(), where,
                 std::to_string(x.size(0)) + " rows for segments of " + std::to_string(segments.tokens()) + " tokens");
}

Tensor check_index(Context& ctx, const char* where, const char* what, const Tensor& index, std::int64_t n) {
  STEPWELL_CHECK(index.defined() && index.dtype() == DType::I64, where,
                 "the tensor of " + std::string(what) + " numbers is " + describe(index) + ", expected I64");
  const Tensor entries = index.contiguous(ctx);
  std::int64_t position = 0;
  for (const std::int64_t entry : entries.span<std::int64_t>()) {
    STEPWELL_CHECK(entry >= 0 && entry < n, where,
                   std::string(what) + " " + std::to_string(entry) + " at position " + std::to_string(position) +
                       ", expected one in [0, " + std::to_string(n) + ")");
    ++position;
  }
  return entries;
}

Shape with_last(const Shape& shape, std::int64_t last) {
  Shape result = shape;
  result[-1] = last;
  return result;
}

Tensor foldable(Context& ctx, const Tensor& t) {
  std::int64_t expected = -1;
  for (int i = t.rank() - 2; i >= 0; --i) {
    if (t.size(i) == 1) continue;
    if (expected >= 0 && t.stride(i) != expected) return t.contiguous(ctx);
    expected = t.stride(i) * t.size(i);
  }
  return t;
}

Tensor writable_state(Context& ctx, Variable&& state, const Shape& shape, DType dtype) {
  Tensor t = std::move(state).take();
  if (!t.defined()) return Tensor::zeros(ctx, shape, dtype);
  return t.is_unique() && t.is_contiguous() ? t : t.clone(ctx);
}

}  // namespace stepwell::autograd
