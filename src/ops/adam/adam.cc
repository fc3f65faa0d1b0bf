// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/adam.h"

#include <algorithm>
#include <string>

#include "ops/adam/adam_simd.h"

namespace stepwell::ops {

namespace {

// Elements of one parallel task: fixed by shape alone (X3).
constexpr std::int64_t kTaskElements = std::int64_t{1} << 15;

std::int64_t tasks_of(std::int64_t n) { return (n + kTaskElements - 1) / kTaskElements; }

template <class T>
double block_sum_of_squares(const T* x, std::int64_t n) {
  constexpr int kLanes = 8;
  double sum[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const double a = x[i + lane];
      sum[lane] += a * a;
    }
  }
  for (; i < n; ++i) sum[i % kLanes] += static_cast<double>(x[i]) * x[i];
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

}  // namespace

double sum_of_squares(Context& ctx, const Tensor& x) {
  return dispatch_float(x.dtype(), "sum_of_squares", [&]<class T>(T) {
    const std::int64_t n = x.numel(), tasks = tasks_of(n);
    const T* values = x.span<T>().data();
    ArenaScope scope(ctx.scratch());
    auto* blocks = ctx.scratch().allocate<double>(tasks);
    ctx.parallel_for(tasks, [&](std::int64_t task, Arena&) {
      const std::int64_t i = task * kTaskElements;
      blocks[task] = block_sum_of_squares(values + i, std::min(kTaskElements, n - i));
    });
    double total = 0;
    for (std::int64_t task = 0; task < tasks; ++task) total += blocks[task];
    return total;
  });
}

void adam_step(Context& ctx, const AdamScalars& scalars, const Tensor& gradient, const Tensor& parameter,
               const Tensor& m, const Tensor& v) {
  for (const Tensor* other : {&gradient, &m, &v}) {
    STEPWELL_CHECK(
        other->shape() == parameter.shape(), "adam_step",
        "shape " + other->shape().to_string() + " beside a parameter of shape " + parameter.shape().to_string());
  }
  dispatch_float(parameter.dtype(), "adam_step", [&]<class T>(T) {
    const std::int64_t n = parameter.numel();
    const T* g = gradient.span<T>().data();
    T *p = parameter.span<T>().data(), *first = m.span<T>().data(), *second = v.span<T>().data();
    ctx.parallel_for(tasks_of(n), [&](std::int64_t task, Arena&) {
      const std::int64_t i = task * kTaskElements;
      adam_array(scalars, g + i, p + i, first + i, second + i, std::min(kTaskElements, n - i));
    });
  });
}

}  // namespace stepwell::ops
