// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/rng.h"

#include <array>
#include <bit>
#include <cmath>

namespace stepwell {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0], b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

std::uint64_t splitmix64(std::uint64_t& state) noexcept {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

std::uint64_t hash_name(std::string_view name) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

namespace {

// ln(x) for normal x > 0, of additions, products and quotients alone: x = m·2^e with m in [√½, √2), and ln(m) =
// 2·atanh((m − 1)/(m + 1)) as its series, whose terms after the last one kept are below 2^-56.
double log_of(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752440) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double sum = 1.0 / 23;
  for (int k = 21; k >= 1; k -= 2) sum = sum * s2 + 1.0 / k;
  constexpr double kLn2High = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;  // the product with e is exact
  return exponent * kLn2High + (2 * s * sum + exponent * kLn2Low);
}

double polynomial(const std::array<double, 8>& c, double x) {
  double sum = c[7];
  for (int i = 6; i >= 0; --i) sum = sum * x + c[static_cast<std::size_t>(i)];
  return sum;
}

}  // namespace

double inverse_normal_cdf(double p) noexcept {
  // Coefficients of PPND16, Wichura, Applied Statistics 37 (1988), algorithm AS 241.
  constexpr std::array<double, 8> kA = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                        1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                        3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr std::array<double, 8> kB = {1.0,
                                        4.2313330701600911252e+1,
                                        6.8718700749205790830e+2,
                                        5.3941960214247511077e+3,
                                        2.1213794301586595867e+4,
                                        3.9307895800092710610e+4,
                                        2.8729085735721942674e+4,
                                        5.2264952788528545610e+3};
  constexpr std::array<double, 8> kC = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                        3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                        2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr std::array<double, 8> kD = {1.0,
                                        2.05319162663775882187e0,
                                        1.67638483018380384940e0,
                                        6.89767334985100004550e-1,
                                        1.48103976427480074590e-1,
                                        1.51986665636164571966e-2,
                                        5.47593808499534494600e-4,
                                        1.05075007164441684324e-9};
  constexpr std::array<double, 8> kE = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                        2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr std::array<double, 8> kF = {1.0,
                                        5.99832206555887937690e-1,
                                        1.36929880922735805310e-1,
                                        1.48753612908506148525e-2,
                                        7.86869131145613259100e-4,
                                        1.84631831751005468180e-5,
                                        1.42151175831644588870e-7,
                                        2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kA, r) / polynomial(kB, r);
  }
  const double r = std::sqrt(-log_of(q < 0 ? p : 1 - p));
  const double x =
      r <= 5 ? polynomial(kC, r - 1.6) / polynomial(kD, r - 1.6) : polynomial(kE, r - 5.0) / polynomial(kF, r - 5.0);
  return q < 0 ? -x : x;
}

Rng Rng::stream(std::string_view name) const {
  std::uint64_t outer = purpose_;
  return Rng(seed_, (purpose_ == 0 ? 0 : splitmix64(outer)) ^ hash_name(name));
}

Rng Rng::stream(std::uint64_t number) const {
  std::uint64_t state = purpose_;
  state = splitmix64(state) + number;
  return Rng(seed_, splitmix64(state));
}

std::uint64_t Rng::bits(std::uint64_t index) const {
  // One block of Philox holds two numbers.
  const std::uint64_t block = index / 2;
  const auto words = philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                                 static_cast<std::uint32_t>(purpose_), static_cast<std::uint32_t>(purpose_ >> 32)},
                                {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  const std::size_t first = index % 2 * 2;
  return std::uint64_t{words[first + 1]} << 32 | words[first];
}

double Rng::uniform(std::uint64_t index) const { return static_cast<double>(bits(index) >> 11) * 0x1p-53; }

double Rng::uniform(std::uint64_t index, double low, double high) const { return low + (high - low) * uniform(index); }

double Rng::normal(std::uint64_t index) const {
  // The middle of one of 2^52 equal parts of (0, 1): never 0 or 1.
  return inverse_normal_cdf((static_cast<double>(bits(index) >> 12) + 0.5) * 0x1p-52);
}

std::uint64_t Rng::below(std::uint64_t index, std::uint64_t n) const {
  // The high half of the 128-bit product bits·n, by halves of 32 bits.
  const std::uint64_t x = bits(index), xl = x & 0xFFFFFFFFu, xh = x >> 32, nl = n & 0xFFFFFFFFu, nh = n >> 32;
  const std::uint64_t middle = xh * nl + (xl * nl >> 32), other = xl * nh + (middle & 0xFFFFFFFFu);
  return xh * nh + (middle >> 32) + (other >> 32);
}

namespace {

template <class Number>
Tensor filled(const Shape& shape, DType dtype, Number number) {
  const Tensor t = Tensor::empty(shape, dtype);
  dispatch_float(dtype, "Rng", [&]<class T>(T) {
    std::uint64_t index = 0;
    for (T& x : t.span<T>()) x = static_cast<T>(number(index++));
  });
  return t;
}

}  // namespace

Tensor Rng::uniform(const Shape& shape, double low, double high, DType dtype) const {
  return filled(shape, dtype, [&](std::uint64_t i) { return uniform(i, low, high); });
}

Tensor Rng::normal(const Shape& shape, double mean, double deviation, DType dtype) const {
  return filled(shape, dtype, [&](std::uint64_t i) { return mean + deviation * normal(i); });
}

}  // namespace stepwell
