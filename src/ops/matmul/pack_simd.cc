// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/pack_simd.cc"
#include <algorithm>
#include <type_traits>

#include "hwy/foreach_target.h"

#include "ops/matmul/block_simd.h"
#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

// One panel or a part of it, rows k … end−1, element by element.
template <class T>
void pack_plain(const RightOperand<T>& s, std::int64_t k, std::int64_t end, std::int64_t columns, T* out) {
  for (; k < end; ++k) {
    const T* row = s.data + k * s.k_stride;
    T* to = out + k * kPanel;
    for (std::int64_t n = 0; n < columns; ++n) to[n] = row[n * s.n_stride];
    std::fill(to + columns, to + kPanel, T(0));
  }
}

#if HWY_TARGET != HWY_SCALAR

// Lanes of 128 bits, inside which transposing is cheap.
template <class T>
inline constexpr int kBlock = 16 / sizeof(T);

// A vector whose 128-bit blocks come from memory, `step` elements apart.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_blocks(D d, const T* from, std::int64_t step) {
  if constexpr (hn::MaxLanes(D()) == kBlock<T>) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    constexpr std::int64_t kBlocks = hn::MaxLanes(D()) / 2 / kBlock<T>;
    return hn::Combine(d, load_blocks(half, from + kBlocks * step, step), load_blocks(half, from, step));
  }
}

// Transposes kBlock vectors inside each of their 128-bit blocks: lane j of block i of in[r] goes to lane r of block i
// of out[j].
template <class D>
HWY_INLINE void transpose_blocks(D d, const hn::Vec<D> (&in)[4], hn::Vec<D> (&out)[4]) {
  const hn::Repartition<double, D> wide;
  const auto lower = [&](auto x, auto y) {
    return hn::BitCast(d, hn::InterleaveLower(wide, hn::BitCast(wide, x), hn::BitCast(wide, y)));
  };
  const auto upper = [&](auto x, auto y) {
    return hn::BitCast(d, hn::InterleaveUpper(wide, hn::BitCast(wide, x), hn::BitCast(wide, y)));
  };
  const auto lower01 = hn::InterleaveLower(d, in[0], in[1]), upper01 = hn::InterleaveUpper(d, in[0], in[1]);
  const auto lower23 = hn::InterleaveLower(d, in[2], in[3]), upper23 = hn::InterleaveUpper(d, in[2], in[3]);
  out[0] = lower(lower01, lower23);
  out[1] = upper(lower01, lower23);
  out[2] = lower(upper01, upper23);
  out[3] = upper(upper01, upper23);
}
template <class D>
HWY_INLINE void transpose_blocks(D d, const hn::Vec<D> (&in)[2], hn::Vec<D> (&out)[2]) {
  out[0] = hn::InterleaveLower(d, in[0], in[1]);
  out[1] = hn::InterleaveUpper(d, in[0], in[1]);
}

// Rows k … k+kRun−1 of a full panel whose source runs along k. All of a source row's part is loaded before the next
// rows, once: strides that are powers of two put the lines of all 16 rows in one set of the cache.
template <class T, int kRun>
HWY_INLINE void transpose_run(const RightOperand<T>& s, std::int64_t k, T* out) {
  constexpr int kBlocks = kRun / kBlock<T>;
  const Tag<T> d;
#pragma GCC unroll 8
  for (int n = 0; n < kPanel; n += kWidth<T>) {
    Vec<T> in[kBlocks][kBlock<T>], turned[kBlock<T>];
#pragma GCC unroll 4
    for (int r = 0; r < kBlock<T>; ++r) {
#pragma GCC unroll 8
      for (int b = 0; b < kBlocks; ++b) {
        in[b][r] = load_blocks(d, s.data + (n + r) * s.n_stride + k + b * kBlock<T>, kBlock<T> * s.n_stride);
      }
    }
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) {
      transpose_blocks(d, in[b], turned);
#pragma GCC unroll 4
      for (int j = 0; j < kBlock<T>; ++j) store(turned[j], out + (k + b * kBlock<T> + j) * kPanel + n);
    }
  }
}

template <class T>
void pack_transposed(const RightOperand<T>& s, std::int64_t K, T* out) {
  // As many vectors at a time as the registers hold: a cache line of each row on AVX3, half of one elsewhere.
  constexpr int kRun = (HWY_TARGET == HWY_AVX3 ? 64 : 32) / sizeof(T);
  std::int64_t k = 0;
  for (; k + kRun <= K; k += kRun) transpose_run<T, kRun>(s, k, out);
  for (; k + kBlock<T> <= K; k += kBlock<T>) transpose_run<T, kBlock<T>>(s, k, out);
  pack_plain(s, k, K, kPanel, out);
}

// Full panels whose source runs along n: row by row, a few panels at a time, since equal lines of all panels may fall
// in one set of the cache.
template <class T>
void pack_copied(const RightOperand<T>& s, std::int64_t K, std::int64_t N, T* panels, std::int64_t panel) {
  constexpr std::int64_t kColumns = 4 * kPanel;
  for (std::int64_t first = 0; first < N; first += kColumns) {
    const std::int64_t end = std::min(first + kColumns, N);
    for (std::int64_t k = 0; k < K; ++k) {
      const T* row = s.data + k * s.k_stride;
      T* to = panels + first / kPanel * panel + k * kPanel;
      for (std::int64_t n = first; n < end; n += kPanel, to += panel) {
#pragma GCC unroll 8
        for (int i = 0; i < kPanel; i += kWidth<T>) store(load(row + n + i), to + i);
      }
    }
  }
}

// Rows k … k+kRun−1 of a packed a, 4 or 8 of its columns: as many rows of a as D has lanes.
template <class T, int kRun, class D>
HWY_INLINE void turn_rows(D d, const T* a, std::int64_t a_row, T* out, std::int64_t step) {
#pragma GCC unroll 8
  for (int k = 0; k < kRun; k += kBlock<T>) {
    hn::Vec<D> in[kBlock<T>], turned[kBlock<T>];
#pragma GCC unroll 4
    for (int r = 0; r < kBlock<T>; ++r) in[r] = load_blocks(d, a + r * a_row + k, kBlock<T> * a_row);
    transpose_blocks(d, in, turned);
#pragma GCC unroll 4
    for (int j = 0; j < kBlock<T>; ++j) hn::StoreU(turned[j], d, out + (k + j) * step);
  }
}

#endif

// Where there are enough rows for a vector, the last one may hold some again.
template <class T>
void pack_rows_t(const T* a, std::int64_t a_row, std::int64_t a_step, std::int64_t M, std::int64_t K, T* out,
                 std::int64_t step) {
  std::int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<T, HWY_TARGET == HWY_AVX3 ? 8 : 4> d;
  constexpr std::int64_t kRows = hn::MaxLanes(decltype(d)()), kLine = 64 / sizeof(T);
  const auto all = [&](const auto& pack) HWY_ATTR __attribute__((always_inline)) {
    for (std::int64_t m = 0; m + kRows <= M; m += kRows) pack(m);
    if (M % kRows != 0) pack(M - kRows);
  };
  if (M >= kRows && a_step == 1) {
    for (; k + kLine <= K; k += kLine) {
      all([&](std::int64_t m) HWY_ATTR __attribute__((always_inline)) {
        turn_rows<T, kLine>(d, a + m * a_row + k, a_row, out + k * step + m, step);
      });
    }
    for (; k + kBlock<T> <= K; k += kBlock<T>) {
      all([&](std::int64_t m) HWY_ATTR __attribute__((always_inline)) {
        turn_rows<T, kBlock<T>>(d, a + m * a_row + k, a_row, out + k * step + m, step);
      });
    }
  } else if (M >= kRows && a_row == 1) {
    for (; k < K; ++k) {
      all([&](std::int64_t m) HWY_ATTR
          __attribute__((always_inline)) { hn::StoreU(hn::LoadU(d, a + k * a_step + m), d, out + k * step + m); });
    }
  }
#endif
  for (; k < K; ++k) {
    for (std::int64_t m = 0; m < M; ++m) out[k * step + m] = a[m * a_row + k * a_step];
  }
}
void pack_rows_f32(const float* a, std::int64_t a_row, std::int64_t a_step, std::int64_t M, std::int64_t K, float* out,
                   std::int64_t step) {
  pack_rows_t(a, a_row, a_step, M, K, out, step);
}
void pack_rows_f64(const double* a, std::int64_t a_row, std::int64_t a_step, std::int64_t M, std::int64_t K,
                   double* out, std::int64_t step) {
  pack_rows_t(a, a_row, a_step, M, K, out, step);
}

template <class T>
void pack_panels_t(const RightOperand<T>& b, std::int64_t K, std::int64_t N, T* panels, std::int64_t panel) {
  std::int64_t n = 0;
#if HWY_TARGET != HWY_SCALAR
  if (b.n_stride == 1) {
    n = N / kPanel * kPanel;
    pack_copied(b, K, n, panels, panel);
  } else if (b.k_stride == 1) {
    for (; n + kPanel <= N; n += kPanel) pack_transposed(b.at(0, n), K, panels + n / kPanel * panel);
  }
#endif
  for (; n < N; n += kPanel) pack_plain(b.at(0, n), 0, K, std::min(kPanel, N - n), panels + n / kPanel * panel);
}
void pack_panels_f32(const RightOperand<float>& b, std::int64_t K, std::int64_t N, float* panels, std::int64_t panel) {
  pack_panels_t(b, K, N, panels, panel);
}
void pack_panels_f64(const RightOperand<double>& b, std::int64_t K, std::int64_t N, double* panels,
                     std::int64_t panel) {
  pack_panels_t(b, K, N, panels, panel);
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(pack_panels_f32);
HWY_EXPORT(pack_panels_f64);

void pack_panels(const RightOperand<float>& b, std::int64_t K, std::int64_t N, float* panels, std::int64_t panel) {
  HWY_DYNAMIC_DISPATCH(pack_panels_f32)(b, K, N, panels, panel);
}
void pack_panels(const RightOperand<double>& b, std::int64_t K, std::int64_t N, double* panels, std::int64_t panel) {
  HWY_DYNAMIC_DISPATCH(pack_panels_f64)(b, K, N, panels, panel);
}

HWY_EXPORT(pack_rows_f32);
HWY_EXPORT(pack_rows_f64);

void pack_rows(const float* a, std::int64_t a_row, std::int64_t a_step, std::int64_t M, std::int64_t K, float* out,
               std::int64_t step) {
  HWY_DYNAMIC_DISPATCH(pack_rows_f32)(a, a_row, a_step, M, K, out, step);
}
void pack_rows(const double* a, std::int64_t a_row, std::int64_t a_step, std::int64_t M, std::int64_t K, double* out,
               std::int64_t step) {
  HWY_DYNAMIC_DISPATCH(pack_rows_f64)(a, a_row, a_step, M, K, out, step);
}

}  // namespace stepwell::ops
#endif
