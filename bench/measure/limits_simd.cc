// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/measure/limits_simd.cc"
#include "bench/measure/limits_simd.h"

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"

#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::bench::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

inline constexpr int kPrefetch = 512;  // elements ahead: 2 KiB

int lanes() { return kWidth<float>; }

float sum_lanes(Vec<float> v) {
  float lane[kWidth<float>];
  store(v, lane);
  float sum = 0;
  for (const float x : lane) sum += x;
  return sum;
}

float fma_chains(std::int64_t rounds) {
  Vec<float> acc[kFmaChains];
#pragma GCC unroll 12
  for (int i = 0; i < kFmaChains; ++i) acc[i] = set(static_cast<float>(i));
  const Vec<float> a = set(0.999f), b = set(0.001f);
  for (std::int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kFmaChains; ++i) acc[i] = fma(a, acc[i], b);
  }
  float sum = 0;
#pragma GCC unroll 12
  for (int i = 0; i < kFmaChains; ++i) sum += sum_lanes(acc[i]);
  return sum;
}

void rewrite_array(float* data, std::int64_t count) {
  constexpr int kStep = 4 * kWidth<float>;
  const Vec<float> a = set(0.999f), b = set(0.001f);
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
#pragma GCC unroll 4
    for (int j = 0; j < kStep; j += kWidth<float>) store(fma(a, load(data + i + j), b), data + i + j);
  }
  for (; i < count; ++i) data[i] = data[i] * 0.999f + 0.001f;
}

float read_array(const float* data, std::int64_t count) {
  constexpr int kVectors = 8;
  constexpr int kStep = kVectors * kWidth<float>;
  Vec<float> acc[kVectors];
#pragma GCC unroll 8
  for (int j = 0; j < kVectors; ++j) acc[j] = zero<float>();
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      if (j * kWidth<float> % 16 == 0) hwy::Prefetch(data + i + j * kWidth<float> + kPrefetch);
      acc[j] = hn::Add(acc[j], load(data + i + j * kWidth<float>));
    }
  }
  float sum = 0;
#pragma GCC unroll 8
  for (int j = 0; j < kVectors; ++j) sum += sum_lanes(acc[j]);
  for (; i < count; ++i) sum += data[i];
  return sum;
}

void copy_array(const float* from, float* to, std::int64_t count) {
  constexpr int kStep = 4 * kWidth<float>;
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
#pragma GCC unroll 4
    for (int j = 0; j < kStep; j += kWidth<float>) {
      if (j % 16 == 0) hwy::Prefetch(from + i + j + kPrefetch);
      store(load(from + i + j), to + i + j);
    }
  }
  for (; i < count; ++i) to[i] = from[i];
}

}  // namespace stepwell::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::bench {

HWY_EXPORT(lanes);
HWY_EXPORT(fma_chains);
HWY_EXPORT(rewrite_array);
HWY_EXPORT(read_array);
HWY_EXPORT(copy_array);

int lanes_f32() { return HWY_DYNAMIC_DISPATCH(lanes)(); }
float fma_loop(std::int64_t rounds) { return HWY_DYNAMIC_DISPATCH(fma_chains)(rounds); }
void rewrite(float* data, std::int64_t count) { HWY_DYNAMIC_DISPATCH(rewrite_array)(data, count); }
float read_stream(const float* data, std::int64_t count) { return HWY_DYNAMIC_DISPATCH(read_array)(data, count); }
void copy_stream(const float* from, float* to, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(copy_array)(from, to, count);
}

}  // namespace stepwell::bench
#endif
