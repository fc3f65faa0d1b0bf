// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "stepwell/core/tensor.h"

namespace stepwell {

// Philox4x32-10 (Salmon et al., SC 2011): four 32-bit words from a 128-bit counter and a 64-bit key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept;

// SplitMix64 (Steele, Lea, Flood 2014): advances `state` and returns the next output.
std::uint64_t splitmix64(std::uint64_t& state) noexcept;

// 64-bit FNV-1a hash of a name: the `purpose` of a stream of random numbers.
std::uint64_t hash_name(std::string_view name) noexcept;

// Inverse of the standard normal distribution function, p in (0, 1); Wichura's AS 241 with the library's own logarithm,
// made of correctly rounded operations only, so that its bits are the same on every machine.
double inverse_normal_cdf(double p) noexcept;

// Random numbers addressed by (seed, purpose, index): no state, so the numbers depend on nothing else — not on the
// order of calls, on threads or on the machine. Index counts single numbers.
class Rng {
 public:
  explicit Rng(std::uint64_t seed, std::uint64_t purpose = 0) : seed_(seed), purpose_(purpose) {}

  // The stream of `name` (of a tensor, of a purpose) under the same seed; nests: stream("a").stream("b").
  Rng stream(std::string_view name) const;
  Rng stream(std::uint64_t number) const;

  std::uint64_t seed() const { return seed_; }
  std::uint64_t purpose() const { return purpose_; }

  std::uint64_t bits(std::uint64_t index) const;  // 64 uniform bits
  double uniform(std::uint64_t index) const;      // in [0, 1), 53 bits
  double uniform(std::uint64_t index, double low, double high) const;
  double normal(std::uint64_t index) const;                         // mean 0, variance 1
  std::uint64_t below(std::uint64_t index, std::uint64_t n) const;  // in [0, n), n ≥ 1

  // Filled element by element with index = flat position; F32 values are the F64 ones rounded.
  Tensor uniform(const Shape& shape, double low, double high, DType dtype = DType::F32) const;
  Tensor normal(const Shape& shape, double mean, double deviation, DType dtype = DType::F32) const;

 private:
  std::uint64_t seed_, purpose_;
};

}  // namespace stepwell
