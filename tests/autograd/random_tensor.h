// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>

#include "stepwell/core/tensor.h"

namespace stepwell {

// Uniform numbers in [low, high), the same on every run; `seed` tells tensors apart.
inline Tensor random_tensor(const Shape& shape, std::uint64_t seed, double low = -1, double high = 1,
                            DType dtype = DType::F64) {
  std::mt19937_64 engine(seed * 0x9E3779B97F4A7C15u + 1);
  const Tensor t = Tensor::empty(shape, DType::F64);
  for (double& v : t.span<double>()) v = low + (high - low) * static_cast<double>(engine() >> 11) * 0x1p-53;
  return t.to(dtype);
}

inline Tensor indices(std::initializer_list<std::int64_t> values, const Shape& shape) {
  return Tensor::from<std::int64_t>(std::span(values.begin(), values.size()), shape);
}

}  // namespace stepwell
