// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "stepwell/core/error.h"

namespace stepwell {

// Element types. F32 computes, F64 verifies, the 16- and 8-bit types only store weights.
enum class DType : std::uint8_t { F32, F64, BF16, F16, I8, U8, I32, I64, Bool };

// Bytes of one element.
std::int64_t dtype_size(DType dtype) noexcept;

// The name as safetensors spells it: "F32", "BF16", "BOOL", …
std::string_view dtype_name(DType dtype) noexcept;

// The DType of a C++ element type (float, double, int64_t, int32_t, int8_t, uint8_t, bool).
template <class T>
constexpr DType dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>) return DType::F32;
  else if constexpr (std::is_same_v<U, double>) return DType::F64;
  else if constexpr (std::is_same_v<U, std::int64_t>) return DType::I64;
  else if constexpr (std::is_same_v<U, std::int32_t>) return DType::I32;
  else if constexpr (std::is_same_v<U, std::int8_t>) return DType::I8;
  else if constexpr (std::is_same_v<U, std::uint8_t>) return DType::U8;
  else {
    static_assert(std::is_same_v<U, bool>, "no DType for this type");
    return DType::Bool;
  }
}

// Calls f(T{}) with T = float or double as `dtype` says; throws for any other dtype.
template <class F>
decltype(auto) dispatch_float(DType dtype, std::string_view where, F&& f) {
  if (dtype == DType::F32) return f(float{});
  if (dtype == DType::F64) return f(double{});
  fail(ErrorCode::Argument, where, "dtype " + std::string(dtype_name(dtype)) + ", expected F32 or F64");
}

}  // namespace stepwell
