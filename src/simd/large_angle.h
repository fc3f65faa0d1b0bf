// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace stepwell::simd {

// x = quadrant·π/2 + r modulo 2π, quadrant 0 … 3, |r| ≤ π/4.
struct ReducedAngle {
  double r;
  std::uint32_t quadrant;
};

// Argument reduction of sin and cos where a few parts of π/2 do not reach: any finite |x| ≥ 2¹². The product with
// 2/π is exact integer arithmetic (Payne and Hanek, 1983), r is within 1 ulp. The same bits on every machine.
ReducedAngle reduce_large_angle(double x) noexcept;

}  // namespace stepwell::simd
