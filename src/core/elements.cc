// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "core/elements.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

namespace stepwell {

namespace {

struct BFloat16 {
  std::uint16_t bits;
};
struct Float16 {
  std::uint16_t bits;
};

float widen(float x) { return x; }
double widen(double x) { return x; }
float widen(BFloat16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }
float widen(Float16 x) {
  const std::uint32_t sign = std::uint32_t{x.bits & 0x8000u} << 16;
  const std::uint32_t exponent = (x.bits >> 10) & 31u, mantissa = x.bits & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent == 0) {
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(mantissa) * 0x1p-24f));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// x as float, an inexact one with its last bit set: rounding that to 16 bits is rounding x itself, once.
float to_odd(float x) { return x; }
float to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || std::isnan(x) || std::isinf(nearest)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(x)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

template <class X>
void narrow(X x, float& out) {
  out = static_cast<float>(x);
}
template <class X>
void narrow(X x, double& out) {
  out = x;
}
template <class X>
void narrow(X wide, BFloat16& out) {
  const float x = to_odd(wide);
  std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) {
    out.bits = static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return;
  }
  bits += 0x7FFFu + ((bits >> 16) & 1u);
  out.bits = static_cast<std::uint16_t>(bits >> 16);
}
template <class X>
void narrow(X wide, Float16& out) {
  const float x = to_odd(wide), a = std::fabs(x);
  const std::uint32_t sign = (std::bit_cast<std::uint32_t>(x) >> 16) & 0x8000u,
                      magnitude = std::bit_cast<std::uint32_t>(a);
  std::uint32_t bits;
  if (std::isnan(x)) {
    bits = 0x7E00u;
  } else if (a >= 65520.0f) {
    bits = 0x7C00u;
  } else if (a < 0x1p-14f) {  // subnormal: a multiple of 2^-24, rounded by the addition
    bits = std::bit_cast<std::uint32_t>(a + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  } else {
    bits = (magnitude + 0xFFFu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
  }
  out.bits = static_cast<std::uint16_t>(sign | bits);
}

// Calls f with a null pointer to the C++ type of a dtype.
template <class F>
void with_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F32: return f(static_cast<float*>(nullptr));
    case DType::F64: return f(static_cast<double*>(nullptr));
    case DType::BF16: return f(static_cast<BFloat16*>(nullptr));
    default: return f(static_cast<Float16*>(nullptr));
  }
}
template <class F>
void with_integer(DType dtype, F&& f) {
  switch (dtype) {
    case DType::I64: return f(static_cast<std::int64_t*>(nullptr));
    case DType::I32: return f(static_cast<std::int32_t*>(nullptr));
    case DType::I8: return f(static_cast<std::int8_t*>(nullptr));
    case DType::U8: return f(static_cast<std::uint8_t*>(nullptr));
    default: return f(static_cast<bool*>(nullptr));
  }
}

[[noreturn]] void does_not_fit(const std::string& value, DType dtype) {
  fail(ErrorCode::Argument, "Tensor", value + " does not fit " + std::string(dtype_name(dtype)));
}

}  // namespace

bool is_floating(DType dtype) noexcept {
  return dtype == DType::F32 || dtype == DType::F64 || dtype == DType::BF16 || dtype == DType::F16;
}

double read_element(const void* data, DType dtype, std::int64_t i) {
  double x = 0;
  auto read = [&]<class T>(T*) {
    if constexpr (std::is_integral_v<T>) {
      x = static_cast<double>(static_cast<const T*>(data)[i]);
    } else {
      x = widen(static_cast<const T*>(data)[i]);
    }
  };
  if (is_floating(dtype)) {
    with_floating(dtype, read);
  } else {
    with_integer(dtype, read);
  }
  return x;
}

void write_element(void* data, DType dtype, std::int64_t i, double x) {
  auto write = [&]<class T>(T*) {
    T& out = static_cast<T*>(data)[i];
    if constexpr (std::is_same_v<T, bool>) {
      out = x != 0;
    } else if constexpr (std::is_integral_v<T>) {
      // 2^digits is exact as a double; the largest integer itself may not be.
      const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
      if (!(x >= static_cast<double>(std::numeric_limits<T>::min()) && x < end)) does_not_fit(std::to_string(x), dtype);
      out = static_cast<T>(x);
    } else {
      narrow(x, out);
    }
  };
  if (is_floating(dtype)) {
    with_floating(dtype, write);
  } else {
    with_integer(dtype, write);
  }
}

void convert_elements(const void* from, DType from_type, void* to, DType to_type, std::int64_t n) {
  if (is_floating(from_type)) {
    with_floating(from_type, [&]<class A>(A*) {
      with_floating(to_type, [&]<class B>(B*) {
        for (std::int64_t i = 0; i < n; ++i) narrow(widen(static_cast<const A*>(from)[i]), static_cast<B*>(to)[i]);
      });
    });
    return;
  }
  with_integer(from_type, [&]<class A>(A*) {
    with_integer(to_type, [&]<class B>(B*) {
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t x = static_cast<const A*>(from)[i];
        if constexpr (!std::is_same_v<B, bool>) {
          if (x < std::numeric_limits<B>::min() || x > std::numeric_limits<B>::max())
            does_not_fit(std::to_string(x), to_type);
        }
        static_cast<B*>(to)[i] = static_cast<B>(x);
      }
    });
  });
}

}  // namespace stepwell
