// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/dropout.h"

#include <algorithm>

namespace stepwell::ops {

namespace {

// Elements of one parallel task: fixed by shape alone (X3). Masks are dearer than products.
constexpr std::size_t kMaskTask = std::size_t{1} << 12;
constexpr std::size_t kApplyTask = std::size_t{1} << 15;

// Calls body(i) for i = 0 … n−1.
template <class Body>
void for_each_index(Context& ctx, std::size_t n, std::size_t per_task, Body body) {
  ctx.parallel_for(static_cast<std::int64_t>((n + per_task - 1) / per_task), [&](std::int64_t task, Arena&) {
    const std::size_t begin = static_cast<std::size_t>(task) * per_task, end = std::min(n, begin + per_task);
    for (std::size_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace

void dropout_mask(Context& ctx, const Rng& rng, std::uint64_t offset, double p, std::span<std::uint8_t> keep) {
  for_each_index(ctx, keep.size(), kMaskTask,
                 [&](std::size_t i) { keep[i] = rng.uniform(offset + i) >= p ? std::uint8_t{1} : std::uint8_t{0}; });
}

template <class T>
void apply_dropout(Context& ctx, std::span<const T> x, std::span<const std::uint8_t> keep, T factor, std::span<T> out) {
  for_each_index(ctx, x.size(), kApplyTask, [&](std::size_t i) { out[i] = keep[i] ? factor * x[i] : T(0); });
}

template void apply_dropout(Context&, std::span<const float>, std::span<const std::uint8_t>, float, std::span<float>);
template void apply_dropout(Context&, std::span<const double>, std::span<const std::uint8_t>, double,
                            std::span<double>);

}  // namespace stepwell::ops
