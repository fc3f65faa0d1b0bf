// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/pooled_attention.h"

#include <algorithm>
#include <string>
#include <vector>

#include "stepwell/ops/elementwise.h"

#include "ops/pooled_attention/pooled_attention_simd.h"
#include "ops/tensor_arguments.h"

namespace stepwell::ops {

namespace {

using Index = std::int64_t;

constexpr Index kParts = 16;  // at most, of the gradients by age

void check_inputs(const char* where, const PooledAttentionInputs& in, std::span<const RowWindow> windows,
                  const char* name, const Tensor& pooled) {
  STEPWELL_CHECK(in.e.defined() && in.e.rank() == 2, where, "e is " + described(in.e) + ", expected [rows, width]");
  const Index L = in.e.size(0), m = in.e.size(1);
  const DType dtype = in.e.dtype();
  check_tensor(where, "q", in.q, in.e.shape(), dtype);
  check_tensor(where, "k", in.k, in.e.shape(), dtype);
  check_tensor(where, "v", in.v, in.e.shape(), dtype);
  check_tensor(where, name, pooled, {static_cast<Index>(windows.size()), m}, dtype);
  STEPWELL_CHECK(in.heads >= 1 && m % in.heads == 0, where,
                 std::to_string(in.heads) + " heads, expected a divisor of the width " + std::to_string(m));
  Index ages = L;
  if (in.age_e.defined()) {
    STEPWELL_CHECK(in.age_e.rank() == 2, where, "age_e is " + described(in.age_e) + ", expected [ages, width]");
    ages = in.age_e.size(0);
    const Shape shape = {ages, m};
    check_tensor(where, "age_e", in.age_e, shape, dtype);
    check_tensor(where, "age_q", in.age_q, shape, dtype);
    check_tensor(where, "age_k", in.age_k, shape, dtype);
    check_tensor(where, "age_v", in.age_v, shape, dtype);
  }
  if (in.weight.defined()) {
    STEPWELL_CHECK(in.weight.rank() == 1, where, "weight is " + described(in.weight) + ", expected [ages]");
    if (!in.age_e.defined()) ages = in.weight.size(0);
    check_tensor(where, "weight", in.weight, {ages}, dtype);
  }
  for (const RowWindow& window : windows) {
    STEPWELL_CHECK(
        window.length >= 1 && window.length <= ages && window.begin >= 0 && window.begin <= L - window.length, where,
        "a window of " + std::to_string(window.length) + " rows from row " + std::to_string(window.begin) +
            ", expected 1 to " + std::to_string(ages) + " rows inside " + std::to_string(L));
  }
}

template <class T>
const T* pointer(const Tensor& t) {
  return t.defined() ? t.span<const T>().data() : nullptr;
}

// The inputs as the kernels see them, at the rows of one window.
template <class T>
AttentionWindow<T> window_at(const PooledAttentionInputs& in, const RowWindow& rows, Arena& scratch) {
  AttentionWindow<T> w;
  w.length = rows.length;
  w.width = in.e.size(1);
  w.heads = in.heads;
  const Index first = rows.begin * w.width;
  w.e = pointer<T>(in.e) + first;
  w.q = pointer<T>(in.q) + first;
  w.k = pointer<T>(in.k) + first;
  w.v = pointer<T>(in.v) + first;
  w.age_e = pointer<T>(in.age_e);
  w.age_q = pointer<T>(in.age_q);
  w.age_k = pointer<T>(in.age_k);
  w.age_v = pointer<T>(in.age_v);
  w.weight = pointer<T>(in.weight);
  w.scratch = scratch.allocate<T>(window_scratch(w.length, w.width, w.heads));
  return w;
}

// Windows cut into at most kParts runs that share no row, [cuts[i], cuts[i + 1]).
std::vector<Index> cut_parts(std::span<const RowWindow> windows) {
  const auto n = static_cast<Index>(windows.size());
  const Index each = std::max<Index>((n + kParts - 1) / kParts, 1);
  std::vector<Index> cuts = {0};
  Index end = 0;
  for (Index i = 0; i < n; ++i) {
    const RowWindow& window = windows[static_cast<std::size_t>(i)];
    STEPWELL_CHECK(i == 0 || window.begin >= windows[static_cast<std::size_t>(i) - 1].begin,
                   "pooled_attention_backward",
                   "window " + std::to_string(i) + " begins before the one before it, expected windows in order");
    if (window.begin >= end && i - cuts.back() >= each) cuts.push_back(i);
    end = std::max(end, window.begin + window.length);
  }
  cuts.push_back(n);
  return cuts;
}

// The tables by age of one part, one after another: [3][ages][width].
template <class T>
void add_parts(const T* parts, Index count, Index size, T* sum) {
  std::fill_n(sum, size, T(0));
  for (Index part = 0; part < count; ++part) {
    for (Index i = 0; i < size; ++i) sum[i] += parts[part * 3 * size + i];
  }
}

template <class T>
void run_backward(Context& ctx, const PooledAttentionInputs& in, std::span<const RowWindow> windows,
                  const Tensor& grad_z, const PooledAttentionGradients& out) {
  const Index m = in.e.size(1), table = in.age_e.defined() ? in.age_e.numel() : 0;
  const std::vector<Index> cuts = cut_parts(windows);
  const auto count = static_cast<Index>(cuts.size()) - 1;
  ArenaScope scope(ctx.scratch());
  T* parts = ctx.scratch().template allocate<T>(count * 3 * table);
  ctx.parallel_for(count, [&](Index part, Arena& scratch) {
    T* by_age = parts + part * 3 * table;
    std::fill_n(by_age, 3 * table, T(0));
    for (Index i = cuts[static_cast<std::size_t>(part)]; i < cuts[static_cast<std::size_t>(part) + 1]; ++i) {
      const RowWindow& rows = windows[static_cast<std::size_t>(i)];
      const Index first = rows.begin * m;
      ArenaScope of_window(scratch);
      AttentionWindowGradients<T> g;
      g.e = out.e.data<T>() + first;
      g.q = out.q.data<T>() + first;
      g.k = out.k.data<T>() + first;
      g.v = out.v.data<T>() + first;
      if (table > 0) {
        g.age_q = by_age;
        g.age_k = by_age + table;
        g.age_v = by_age + 2 * table;
      }
      pool_window_backward(window_at<T>(in, rows, scratch), pointer<T>(grad_z) + i * m, g);
    }
  });
  if (table == 0) return;
  const Tensor* tables[] = {&out.age_q, &out.age_k, &out.age_v};
  ctx.parallel_for(3, [&](Index i, Arena&) { add_parts(parts + i * table, count, table, tables[i]->data<T>()); });
}

}  // namespace

void pooled_attention(Context& ctx, const PooledAttentionInputs& in, std::span<const RowWindow> windows,
                      const Tensor& z) {
  check_inputs("pooled_attention", in, windows, "z", z);
  if (z.numel() == 0) return;
  dispatch_float(in.e.dtype(), "pooled_attention", [&]<class T>(T) {
    T* to = z.span<T>().data();
    ctx.parallel_for(static_cast<Index>(windows.size()), [&](Index i, Arena& scratch) {
      pool_window(window_at<T>(in, windows[static_cast<std::size_t>(i)], scratch), to + i * in.e.size(1));
    });
  });
}

void pooled_attention_backward(Context& ctx, const PooledAttentionInputs& in, std::span<const RowWindow> windows,
                               const Tensor& grad_z, const PooledAttentionGradients& out) {
  const char* where = "pooled_attention_backward";
  check_inputs(where, in, windows, "grad_z", grad_z);
  const Tensor* rows[] = {&out.e, &out.q, &out.k, &out.v};
  for (const Tensor* t : rows) {
    check_tensor(where, "a gradient", *t, in.e.shape(), in.e.dtype());
    fill(ctx, *t, 0);
  }
  const Tensor* tables[] = {&out.age_q, &out.age_k, &out.age_v};
  for (const Tensor* t : tables) {
    if (in.age_e.defined()) check_tensor(where, "a gradient by age", *t, in.age_e.shape(), in.e.dtype());
    if (in.age_e.defined()) fill(ctx, *t, 0);
  }
  if (grad_z.numel() == 0) return;
  dispatch_float(in.e.dtype(), where, [&]<class T>(T) { run_backward<T>(ctx, in, windows, grad_z, out); });
}

}  // namespace stepwell::ops
