// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "python/extension/row_major.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "stepwell/core/tensor.h"

#include "python/extension/arrays.h"

namespace stepwell::python {

namespace {

// A block is a cache line of float32 wide either way.
constexpr std::int64_t kBlock = 16;

// The two dimensions that are copied together: the last one, and the one along which the source is densest.
struct Plane {
  std::int64_t rows = 1, columns = 1;
  std::int64_t from_row = 0, from_column = 0, to_row = 0;  // strides; along a row of the target it is 1
};

template <class T>
void copy_block(const T* from, T* to, const Plane& p, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) to[r * p.to_row + c] = from[r * p.from_row + c * p.from_column];
  }
}

template <class T>
void copy_plane(const T* from, T* to, const Plane& p) {
  if (p.from_column == 1) {
    for (std::int64_t r = 0; r < p.rows; ++r) std::copy_n(from + r * p.from_row, p.columns, to + r * p.to_row);
    return;
  }
  for (std::int64_t c = 0; c < p.columns; c += kBlock) {
    for (std::int64_t r = 0; r < p.rows; r += kBlock) {
      const T* source = from + r * p.from_row + c * p.from_column;
      T* target = to + r * p.to_row + c;
      if (p.rows - r >= kBlock && p.columns - c >= kBlock) {
        copy_block(source, target, p, kBlock, kBlock);  // of fixed size: unrolled
      } else {
        copy_block(source, target, p, std::min(kBlock, p.rows - r), std::min(kBlock, p.columns - c));
      }
    }
  }
}

template <class T>
void copy(const Tensor& from, Tensor& to) {
  const int rank = from.rank();
  if (from.numel() == 0) return;
  if (rank == 0) {
    *static_cast<T*>(to.raw()) = *static_cast<const T*>(from.raw());
    return;
  }
  int dense = -1;
  for (int d = 0; d + 1 < rank; ++d) {
    if (from.size(d) > 1 && (dense < 0 || std::abs(from.stride(d)) < std::abs(from.stride(dense)))) dense = d;
  }
  Plane plane{.columns = from.size(rank - 1), .from_column = from.stride(rank - 1)};
  if (dense >= 0) {
    plane.rows = from.size(dense);
    plane.from_row = from.stride(dense);
    plane.to_row = to.stride(dense);
  }
  std::array<std::int64_t, Shape::kMaxRank> index{};
  const std::int64_t planes = from.numel() / (plane.rows * plane.columns);
  for (std::int64_t i = 0; i < planes; ++i) {
    std::int64_t source = 0, target = 0;
    for (int d = 0; d < rank; ++d) {
      source += index[static_cast<std::size_t>(d)] * from.stride(d);
      target += index[static_cast<std::size_t>(d)] * to.stride(d);
    }
    copy_plane(static_cast<const T*>(from.raw()) + source, static_cast<T*>(to.raw()) + target, plane);
    for (int d = rank - 2; d >= 0; --d) {
      if (d == dense) continue;
      auto& at = index[static_cast<std::size_t>(d)];
      if (++at < from.size(d)) break;
      at = 0;
    }
  }
}

}  // namespace

nb::object row_major(nb::handle array) {
  const Tensor from = tensor_of(array, "array");
  Tensor to = Tensor::empty(from.shape(), from.dtype());
  {
    const nb::gil_scoped_release unlocked;
    from.dtype() == DType::F64 ? copy<double>(from, to) : copy<float>(from, to);
  }
  return array_of(std::move(to));
}

}  // namespace stepwell::python
