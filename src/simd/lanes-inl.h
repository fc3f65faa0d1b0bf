// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// The lane interface: the few operations that kernels and vector functions are written in, once, for every instruction
// set. Included by *_simd.cc after hwy/foreach_target.h, once per target (hence the toggled guard).
#if defined(STEPWELL_SIMD_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_SIMD_LANES_INL_H_
#undef STEPWELL_SIMD_LANES_INL_H_
#else
#define STEPWELL_SIMD_LANES_INL_H_
#endif

#include <cmath>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

// The thread sanitizer sees no access of more than 16 bytes and no masked one: load and store tell it of theirs.
#if HWY_IS_TSAN
extern "C" void __tsan_read_range(const void* begin, std::size_t bytes);
extern "C" void __tsan_write_range(void* begin, std::size_t bytes);
#endif

HWY_BEFORE_NAMESPACE();
namespace stepwell::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Full vectors of T and their lane count (a compile-time constant on every target we build).
template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vec = hn::Vec<Tag<T>>;
template <class T>
inline constexpr int kWidth = HWY_LANES(T);

template <class T>
HWY_INLINE Vec<T> set(T value) {
  return hn::Set(Tag<T>(), value);
}
template <class T>
HWY_INLINE Vec<T> zero() {
  return hn::Zero(Tag<T>());
}
template <class T>
HWY_INLINE Vec<T> load(const T* p) {
#if HWY_IS_TSAN
  __tsan_read_range(p, static_cast<std::size_t>(kWidth<T>) * sizeof(T));
#endif
  return hn::LoadU(Tag<T>(), p);
}
template <class T>
HWY_INLINE void store(Vec<T> v, T* p) {
#if HWY_IS_TSAN
  __tsan_write_range(p, static_cast<std::size_t>(kWidth<T>) * sizeof(T));
#endif
  hn::StoreU(v, Tag<T>(), p);
}

// a·b + c in one rounding (SSE4 has none: two roundings there, outside X7).
template <class V>
HWY_INLINE V fma(V a, V b, V c) {
#if HWY_TARGET == HWY_SCALAR
  return V(std::fma(a.raw, b.raw, c.raw));
#else
  return hn::MulAdd(a, b, c);
#endif
}
// c − a·b in one rounding.
template <class V>
HWY_INLINE V fnma(V a, V b, V c) {
#if HWY_TARGET == HWY_SCALAR
  return V(std::fma(-a.raw, b.raw, c.raw));
#else
  return hn::NegMulAdd(a, b, c);
#endif
}

// The first n lanes (0 < n ≤ kWidth) from memory, the others 0; touches nothing beyond p[n−1].
template <class T>
HWY_INLINE Vec<T> load_tail(const T* p, std::int64_t n) {
#if HWY_TARGET == HWY_SCALAR
  (void)n;
  return load(p);
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#if HWY_IS_TSAN
  __tsan_read_range(p, static_cast<std::size_t>(n) * sizeof(T));
#endif
  // On these targets MaskedLoad is a masked instruction that never touches masked-off memory.
  return hn::MaskedLoad(hn::FirstN(Tag<T>(), static_cast<std::size_t>(n)), Tag<T>(), p);
#else
  HWY_ALIGN T buffer[kWidth<T>] = {};
  std::memcpy(buffer, p, static_cast<std::size_t>(n) * sizeof(T));
  return hn::Load(Tag<T>(), buffer);
#endif
}
template <class T>
HWY_INLINE void store_tail(Vec<T> v, T* p, std::int64_t n) {
#if HWY_TARGET == HWY_SCALAR
  (void)n;
  store(v, p);
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#if HWY_IS_TSAN
  __tsan_write_range(p, static_cast<std::size_t>(n) * sizeof(T));
#endif
  hn::BlendedStore(v, hn::FirstN(Tag<T>(), static_cast<std::size_t>(n)), Tag<T>(), p);
#else
  HWY_ALIGN T buffer[kWidth<T>];
  hn::Store(v, Tag<T>(), buffer);
  std::memcpy(p, buffer, static_cast<std::size_t>(n) * sizeof(T));
#endif
}

// load_tail and store_tail for any n: a full vector, a part of one, or nothing (n ≤ 0).
template <class T>
HWY_INLINE Vec<T> load_part(const T* p, std::int64_t n) {
  if (n >= kWidth<T>) return load(p);
  return n > 0 ? load_tail(p, n) : zero<T>();
}
template <class T>
HWY_INLINE void store_part(Vec<T> v, T* p, std::int64_t n) {
  if (n >= kWidth<T>) {
    store(v, p);
  } else if (n > 0) {
    store_tail(v, p, n);
  }
}

// The first n lanes of v (0 < n ≤ kWidth), the others 0.
template <class T>
HWY_INLINE Vec<T> keep_part(Vec<T> v, std::int64_t n) {
  return hn::IfThenElseZero(hn::FirstN(Tag<T>(), static_cast<std::size_t>(n)), v);
}

// Calls body(i, lanes) for the vectors of an array of n elements: i = 0, kWidth, …, and lanes = kWidth but for the
// last.
template <class T, class Body>
HWY_INLINE void for_vectors(std::int64_t n, Body body) {
  constexpr std::int64_t W = kWidth<T>;
  std::int64_t i = 0;
  for (; i + W <= n; i += W) body(i, W);
  if (i < n) body(i, n - i);
}

}  // namespace stepwell::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
