// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

namespace stepwell {

// What a kernel sees of an array: a pointer, R extents and R strides in elements. Owns nothing, checks nothing.
// An absent optional array is a default View: data == nullptr.
template <class T, int R>
struct View {
  T* data = nullptr;
  std::array<std::int64_t, R> extent{};
  std::array<std::int64_t, R> stride{};

  // A row-major array without gaps.
  static View contiguous(T* data, std::array<std::int64_t, R> extent) {
    View v{data, extent, {}};
    std::int64_t step = 1;
    for (int i = R - 1; i >= 0; --i) {
      v.stride[i] = step;
      step *= extent[i];
    }
    return v;
  }

  explicit operator bool() const { return data != nullptr; }

  // A mutable view converts to a read-only one.
  operator View<const T, R>() const
    requires(!std::is_const_v<T>)
  {
    return {data, extent, stride};
  }

  template <class... I>
  T& operator()(I... index) const {
    static_assert(sizeof...(I) == R);
    const std::int64_t at[] = {static_cast<std::int64_t>(index)...};
    std::int64_t offset = 0;
    for (int i = 0; i < R; ++i) offset += at[i] * stride[i];
    return data[offset];
  }

  // Pointer to the first element of row i (of the slice i, for R > 2).
  T* row(std::int64_t i) const { return data + i * stride[0]; }

  std::int64_t size() const {
    std::int64_t n = 1;
    for (auto e : extent) n *= e;
    return n;
  }

  bool is_contiguous() const {
    std::int64_t step = 1;
    for (int i = R - 1; i >= 0; --i) {
      if (extent[i] != 1 && stride[i] != step) return false;
      step *= extent[i];
    }
    return true;
  }
};

}  // namespace stepwell
