// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/adam/adam_simd.cc"
#include "ops/adam/adam_simd.h"

#include "hwy/foreach_target.h"

#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

template <class T>
struct AdamLanes {
  Vec<T> scale, beta1, rest1, beta2, rest2, rate, root_scale, eps, keep;

  explicit AdamLanes(const AdamScalars& s)
      : scale(set(static_cast<T>(s.gradient_scale))),
        beta1(set(static_cast<T>(s.beta1))),
        rest1(set(static_cast<T>(1 - s.beta1))),
        beta2(set(static_cast<T>(s.beta2))),
        rest2(set(static_cast<T>(1 - s.beta2))),
        rate(set(static_cast<T>(s.rate))),
        root_scale(set(static_cast<T>(s.root_scale))),
        eps(set(static_cast<T>(s.eps))),
        keep(set(static_cast<T>(s.keep))) {}

  // Multiplications and additions are kept apart: the bits are then those of the SSE4 target too.
  HWY_INLINE void step(Vec<T> g, Vec<T>& p, Vec<T>& m, Vec<T>& v) const {
    g = hn::Mul(scale, g);
    m = hn::Add(hn::Mul(beta1, m), hn::Mul(rest1, g));
    v = hn::Add(hn::Mul(beta2, v), hn::Mul(rest2, hn::Mul(g, g)));
    const Vec<T> root = hn::Add(hn::Mul(hn::Sqrt(v), root_scale), eps);
    p = hn::Sub(hn::Mul(keep, p), hn::Div(hn::Mul(rate, m), root));
  }
};

template <class T>
void adam_t(const AdamScalars& scalars, const T* g, T* p, T* m, T* v, std::int64_t n) {
  const AdamLanes<T> lanes(scalars);
  std::int64_t i = 0;
  for (; i + kWidth<T> <= n; i += kWidth<T>) {
    Vec<T> pi = load(p + i), mi = load(m + i), vi = load(v + i);
    lanes.step(load(g + i), pi, mi, vi);
    store<T>(pi, p + i);
    store<T>(mi, m + i);
    store<T>(vi, v + i);
  }
  if (i == n) return;
  Vec<T> pi = load_tail(p + i, n - i), mi = load_tail(m + i, n - i), vi = load_tail(v + i, n - i);
  lanes.step(load_tail(g + i, n - i), pi, mi, vi);
  store_tail<T>(pi, p + i, n - i);
  store_tail<T>(mi, m + i, n - i);
  store_tail<T>(vi, v + i, n - i);
}
void adam_f32(const AdamScalars& s, const float* g, float* p, float* m, float* v, std::int64_t n) {
  adam_t(s, g, p, m, v, n);
}
void adam_f64(const AdamScalars& s, const double* g, double* p, double* m, double* v, std::int64_t n) {
  adam_t(s, g, p, m, v, n);
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(adam_f32);
HWY_EXPORT(adam_f64);

void adam_array(const AdamScalars& s, const float* g, float* p, float* m, float* v, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(adam_f32)(s, g, p, m, v, n);
}
void adam_array(const AdamScalars& s, const double* g, double* p, double* m, double* v, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(adam_f64)(s, g, p, m, v, n);
}

}  // namespace stepwell::ops
#endif
