// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>

#include "stepwell/core/tensor.h"

namespace stepwell {

// A tensor of any dtype with bytes drawn at random (0 and 1 for BOOL): NaN payloads and denormals included.
inline Tensor random_tensor(const Shape& shape, DType dtype, std::uint64_t seed) {
  Tensor t = Tensor::empty(shape, dtype);
  std::mt19937_64 engine(seed);
  auto* bytes = static_cast<unsigned char*>(t.raw());
  const std::int64_t n = t.numel() * dtype_size(dtype);
  for (std::int64_t i = 0; i < n; ++i)
    bytes[i] = static_cast<unsigned char>(engine() & (dtype == DType::Bool ? 1 : 255));
  return t;
}

}  // namespace stepwell
