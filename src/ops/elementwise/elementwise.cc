// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/elementwise.h"

#include <algorithm>

#include "ops/elementwise/elementwise_simd.h"

namespace stepwell::ops {

namespace {

// Elements of one parallel task: fixed by shape alone (X3).
constexpr std::int64_t kTaskElements = std::int64_t{1} << 15;

}  // namespace

void add(Context& ctx, const Tensor& a, const Tensor& b, const Tensor& out) {
  dispatch_float(out.dtype(), "add", [&]<class T>(T) {
    const std::int64_t n = out.numel();
    const T *x = a.span<T>().data(), *y = b.span<T>().data();
    T* z = out.span<T>().data();
    ctx.parallel_for((n + kTaskElements - 1) / kTaskElements, [&](std::int64_t task, Arena&) {
      const std::int64_t i = task * kTaskElements;
      add_array(x + i, y + i, z + i, std::min(kTaskElements, n - i));
    });
  });
}

}  // namespace stepwell::ops
