// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/elementwise_simd.cc"
#include "ops/elementwise/elementwise_simd.h"

#include "hwy/foreach_target.h"

#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

template <class T>
void add_t(const T* a, const T* b, T* out, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kWidth<T> <= n; i += kWidth<T>) store<T>(hn::Add(load(a + i), load(b + i)), out + i);
  if (i < n) store_tail<T>(hn::Add(load_tail(a + i, n - i), load_tail(b + i, n - i)), out + i, n - i);
}
void add_f32(const float* a, const float* b, float* out, std::int64_t n) { add_t(a, b, out, n); }
void add_f64(const double* a, const double* b, double* out, std::int64_t n) { add_t(a, b, out, n); }

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(add_f32);
HWY_EXPORT(add_f64);

void add_array(const float* a, const float* b, float* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(add_f32)(a, b, out, n);
}
void add_array(const double* a, const double* b, double* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(add_f64)(a, b, out, n);
}

}  // namespace stepwell::ops
#endif
