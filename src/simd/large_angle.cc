// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "simd/large_angle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace stepwell::simd {

namespace {

// 2/π = 0.w₀w₁w₂… in base 2³².
constexpr std::array<std::uint32_t, 40> kTwoOverPi = {
    0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u, 0x3C439041u, 0xFE5163ABu, 0xDEBBC561u,
    0xB7246E3Au, 0x424DD2E0u, 0x06492EEAu, 0x09D1921Cu, 0xFE1DEB1Cu, 0xB129A73Eu, 0xE88235F5u, 0x2EBB4484u,
    0xE99C7026u, 0xB45F7E41u, 0x3991D639u, 0x835339F4u, 0x9C845F8Bu, 0xBDF9283Bu, 0x1FF897FFu, 0xDE05980Fu,
    0xEF2F118Bu, 0x5A0A6D1Fu, 0x6D367ECFu, 0x27CB09B7u, 0x4F463F66u, 0x9E5FEA2Du, 0x7527BAC7u, 0xEBE5F17Bu,
    0x3D0739F7u, 0x8A5292EAu, 0x6BFB5FB1u, 0x1F8D5D08u, 0x56033046u, 0xFC7B6BABu, 0xF0CFBC20u, 0x9AF4361Du};
constexpr int kWords = 8;  // of 2/π that take part: more than 160 bits behind the binary point
constexpr double kHalfPiHigh = 0x1.921fb54442d18p0, kHalfPiLow = 0x1.1a62633145c07p-54;

// A long number, least significant word first.
using Long = std::array<std::uint32_t, kWords + 2>;

// Bits at … at+63.
std::uint64_t bits_from(const Long& x, int at) {
  std::uint64_t value = 0;
  for (int i = 2; i >= 0; --i) {
    const int word = at / 32 + i, shift = 32 * i - at % 32;
    const std::uint64_t w = word < static_cast<int>(x.size()) ? x[static_cast<std::size_t>(word)] : 0;
    value |= shift >= 0 ? (shift < 64 ? w << shift : 0) : w >> -shift;
  }
  return value;
}

}  // namespace

ReducedAngle reduce_large_angle(double x) noexcept {
  // |x| = m·2^e with m of 53 bits.
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const int e = static_cast<int>(bits >> 52 & 0x7FF) - 1075;
  const std::uint64_t m = (bits & 0xFFFFFFFFFFFFFu) | std::uint64_t{1} << 52;
  // Words before `first` only contribute multiples of 4 quadrants.
  const int first = std::max(0, (e - 2) / 32);
  const int point = 32 * (first + kWords) - e;  // bits of the product behind the binary point
  Long product{};
  for (int half = 0; half < 2; ++half) {
    const std::uint64_t factor = half == 0 ? m & 0xFFFFFFFFu : m >> 32;
    std::uint64_t carry = 0;
    for (int i = 0; i < kWords; ++i) {
      const int place = i + half, digits = first + kWords - 1 - i;
      auto& word = product[static_cast<std::size_t>(place)];
      const std::uint64_t sum = factor * kTwoOverPi[static_cast<std::size_t>(digits)] + word + carry;
      word = static_cast<std::uint32_t>(sum);
      carry = sum >> 32;
    }
    const int top = kWords + half;
    product[static_cast<std::size_t>(top)] += static_cast<std::uint32_t>(carry);
  }
  auto quadrant = static_cast<std::uint32_t>(bits_from(product, point) & 3);
  // The fraction as 128 bits; from ½ on it is the next quadrant's, less than 0.
  std::uint64_t high = bits_from(product, point - 64), low = bits_from(product, point - 128);
  bool negative = high >> 63 != 0;
  if (negative) {
    ++quadrant;
    low = ~low + 1;
    high = ~high + (low == 0);
  }
  // high:low shifted until its top bit is set; no double comes within 2^-62 of a multiple of π/2.
  const int zeros = std::min(std::countl_zero(high), 63);
  if (zeros > 0) high = high << zeros | low >> (64 - zeros);
  const double scale = std::bit_cast<double>(static_cast<std::uint64_t>(1023 - 64 - zeros) << 52);
  const double top = static_cast<double>(high >> 11) * 2048, rest = static_cast<double>(high & 2047);
  const double product_high = top * kHalfPiHigh, product_low = std::fma(top, kHalfPiHigh, -product_high);
  double r = (product_high + (product_low + (top * kHalfPiLow + rest * kHalfPiHigh))) * scale;
  if (x < 0) {
    quadrant = 4 - quadrant;
    negative = !negative;
  }
  if (negative) r = -r;
  return {r, quadrant & 3};
}

}  // namespace stepwell::simd
