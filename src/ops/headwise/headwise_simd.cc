// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/headwise/headwise_simd.cc"
#include "ops/headwise/headwise_simd.h"

#include <algorithm>

#include "hwy/foreach_target.h"

#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

constexpr std::int64_t kLargestBlock = 16;
constexpr std::int64_t kSumTokens = 256;  // matmul cuts its sums at multiples of this

template <class T>
bool fits(std::int64_t p) {
#if HWY_TARGET == HWY_SCALAR
  return p == 1;
#else
  return p >= 1 && p <= kLargestBlock && kWidth<T> % p == 0;
#endif
}

#if HWY_TARGET == HWY_SCALAR

// A vector of one number holds blocks of one.
template <class T>
struct Spread {
  explicit Spread(std::int64_t) {}
  Vec<T> operator()(Vec<T> v, std::int64_t) const { return v; }
};

#else

// Entry i of every block, in all lanes of the block.
template <class T>
class Spread {
 public:
  explicit Spread(std::int64_t p) {
    HWY_ALIGN Index lanes[kWidth<T>];
    for (std::int64_t i = 0; i < p; ++i) {
      for (std::int64_t j = 0; j < kWidth<T>; ++j) lanes[j] = static_cast<Index>(j / p * p + i);
      std::copy_n(lanes, kWidth<T>, lanes_[i]);
    }
  }
  HWY_INLINE Vec<T> operator()(Vec<T> v, std::int64_t i) const {
    return hn::TableLookupLanes(v, hn::SetTableIndices(Tag<T>(), lanes_[i]));
  }

 private:
  using Index = hwy::MakeSigned<T>;
  HWY_ALIGN Index lanes_[kLargestBlock][kWidth<T>];
};

#endif

template <class T>
void headwise_blocks_t(const HeadwiseBlocks<T>& work) {
  const Spread<T> spread(work.p);
  for (std::int64_t t = 0; t < work.tokens; ++t) {
    const T* x = work.x + t * work.x_stride;
    T* y = work.y + t * work.y_stride;
    for_vectors<T>(work.features, [&](std::int64_t j, std::int64_t lanes) HWY_ATTR {
      const Vec<T> v = load_part(x + j, lanes);
      Vec<T> sum = zero<T>();
      for (std::int64_t i = 0; i < work.p; ++i) {
        sum = fma(spread(v, i), load_part(work.weight + i * work.features + j, lanes), sum);
      }
      if (work.bias) sum = hn::Add(sum, load_part(work.bias + j, lanes));
      store_part<T>(sum, y + j, lanes);
    });
  }
}

template <class T>
void headwise_sums_t(const HeadwiseSums<T>& work) {
  const Spread<T> spread(work.p);
  for_vectors<T>(work.features, [&](std::int64_t j, std::int64_t lanes) HWY_ATTR {
    Vec<T> total[kLargestBlock], sum[kLargestBlock];
    for (std::int64_t i = 0; i < work.p; ++i) total[i] = zero<T>();
    for (std::int64_t first = 0; first < work.tokens; first += kSumTokens) {
      const std::int64_t last = std::min(first + kSumTokens, work.tokens);
      for (std::int64_t i = 0; i < work.p; ++i) sum[i] = zero<T>();
      for (std::int64_t t = first; t < last; ++t) {
        const Vec<T> g = load_part(work.grad_y + t * work.grad_stride + j, lanes);
        const Vec<T> v = load_part(work.x + t * work.x_stride + j, lanes);
        for (std::int64_t i = 0; i < work.p; ++i) sum[i] = fma(g, spread(v, i), sum[i]);
      }
      for (std::int64_t i = 0; i < work.p; ++i) total[i] = first == 0 ? sum[i] : hn::Add(total[i], sum[i]);
    }
    for (std::int64_t i = 0; i < work.p; ++i) store_part<T>(total[i], work.weight + i * work.row + j, lanes);
  });
}

bool headwise_fits_f32(std::int64_t p) { return fits<float>(p); }
bool headwise_fits_f64(std::int64_t p) { return fits<double>(p); }
void headwise_blocks_f32(const HeadwiseBlocks<float>& work) { headwise_blocks_t(work); }
void headwise_blocks_f64(const HeadwiseBlocks<double>& work) { headwise_blocks_t(work); }
void headwise_sums_f32(const HeadwiseSums<float>& work) { headwise_sums_t(work); }
void headwise_sums_f64(const HeadwiseSums<double>& work) { headwise_sums_t(work); }

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(headwise_fits_f32);
HWY_EXPORT(headwise_fits_f64);
HWY_EXPORT(headwise_blocks_f32);
HWY_EXPORT(headwise_blocks_f64);
HWY_EXPORT(headwise_sums_f32);
HWY_EXPORT(headwise_sums_f64);

bool headwise_fits(std::int64_t p, float) { return HWY_DYNAMIC_DISPATCH(headwise_fits_f32)(p); }
bool headwise_fits(std::int64_t p, double) { return HWY_DYNAMIC_DISPATCH(headwise_fits_f64)(p); }
void headwise_blocks(const HeadwiseBlocks<float>& work) { HWY_DYNAMIC_DISPATCH(headwise_blocks_f32)(work); }
void headwise_blocks(const HeadwiseBlocks<double>& work) { HWY_DYNAMIC_DISPATCH(headwise_blocks_f64)(work); }
void headwise_sums(const HeadwiseSums<float>& work) { HWY_DYNAMIC_DISPATCH(headwise_sums_f32)(work); }
void headwise_sums(const HeadwiseSums<double>& work) { HWY_DYNAMIC_DISPATCH(headwise_sums_f64)(work); }

}  // namespace stepwell::ops
#endif
