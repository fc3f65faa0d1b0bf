// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/norm.h"

#include <algorithm>
#include <string>

#include "stepwell/core/view.h"
#include "stepwell/ops/rows.h"

#include "ops/norm/norm_simd.h"
#include "ops/tensor_arguments.h"

namespace stepwell::ops {

namespace {

using Index = std::int64_t;

constexpr Index kBlockRows = 256;  // of one block of a weight gradient

void check_optional(const char* where, const char* name, const Tensor& t, const Shape& shape, DType dtype) {
  if (t.defined()) check_tensor(where, name, t, shape, dtype);
}
void check_input(const char* where, const Tensor& x, double eps) {
  STEPWELL_CHECK(x.defined() && x.rank() >= 1, where, "x is " + described(x) + ", expected at least one dimension");
  STEPWELL_CHECK(eps >= 0, where, "eps = " + std::to_string(eps) + ", expected ≥ 0");
}
void check_group(const char* where, Index group, Index width) {
  STEPWELL_CHECK(group >= 0 && (group == 0 || width % group == 0), where,
                 "group = " + std::to_string(group) + ", expected a divisor of the width, " + std::to_string(width));
}
void check_rms_norm(const char* where, const RmsNormInputs& in) {
  check_input(where, in.x, in.eps);
  const Index width = in.x.size(-1);
  check_optional(where, "z", in.z, in.x.shape(), in.x.dtype());
  check_optional(where, "weight", in.weight, {width}, in.x.dtype());
  check_group(where, in.group, width);
}
void check_layer_norm(const char* where, const LayerNormInputs& in) {
  check_input(where, in.x, in.eps);
  check_optional(where, "weight", in.weight, {in.x.size(-1)}, in.x.dtype());
  check_optional(where, "bias", in.bias, {in.x.size(-1)}, in.x.dtype());
  check_group(where, in.group, in.x.size(-1));
}

template <class T>
T* data_of(const Tensor& t) {
  return t.defined() ? t.span<T>().data() : nullptr;
}
template <class T>
T* moved(T* p, Index offset) {
  return p ? p + offset : nullptr;
}

template <class T>
RmsNormRows<T> rows_of(const RmsNormInputs& in) {
  const Index width = in.x.size(-1), group = in.group == 0 ? width : in.group;
  return {data_of<const T>(in.x),
          data_of<const T>(in.z),
          data_of<const T>(in.weight),
          static_cast<T>(in.eps),
          group,
          group == 0 ? 0 : width / group,
          in.gate,
          in.activation};
}
template <class T>
LayerNormRows<T> rows_of(const LayerNormInputs& in) {
  const Index width = in.x.size(-1), group = in.group == 0 ? width : in.group;
  return {data_of<const T>(in.x),
          data_of<const T>(in.weight),
          data_of<const T>(in.bias),
          static_cast<T>(in.eps),
          group,
          group == 0 ? 0 : width / group,
          in.one_plus_weight ? T{1} : T{0}};
}

// Runs f(first, count, sums, scratch) over blocks of 256 rows. Each block adds its part of the weight gradients to
// sums [length], which start at 0; the parts are added in order into `total` (skipped if length = 0).
template <class T, class F>
void for_row_blocks(Context& ctx, Index rows, Index length, T* total, F&& f) {
  const Index blocks = std::max<Index>(1, (rows + kBlockRows - 1) / kBlockRows);
  ArenaScope scope(ctx.scratch());
  T* parts = blocks == 1 ? total : ctx.scratch().allocate<T>(blocks * length);
  ctx.parallel_for(blocks, [&](Index block, Arena& scratch) {
    T* sums = moved(parts, block * length);
    std::fill_n(sums, length, T{0});
    const Index first = block * kBlockRows;
    f(first, std::min(kBlockRows, rows - first), sums, scratch);
  });
  if (blocks > 1 && length > 0) sum_rows(ctx, View<const T, 2>::contiguous(parts, {blocks, length}), total);
}

}  // namespace

void rms_norm(Context& ctx, const RmsNormInputs& in, const Tensor& y) {
  check_rms_norm("rms_norm", in);
  check_tensor("rms_norm", "y", y, in.x.shape(), in.x.dtype());
  dispatch_float(in.x.dtype(), "rms_norm", [&]<class T>(T) {
    const auto kernel = rows_of<T>(in);
    T* out = data_of<T>(y);
    const Index width = in.x.size(-1);
    for_row_tasks(ctx, in.x.shape().rows(), width, [&](Index first, Index rows) {
      auto part = kernel;
      part.x = moved(part.x, first * width);
      part.z = moved(part.z, first * width);
      rms_norm_rows(part, rows, out + first * width);
    });
  });
}

void rms_norm_backward(Context& ctx, const RmsNormInputs& in, const Tensor& grad_y, const RmsNormGradients& out) {
  const char* where = "rms_norm_backward";
  check_rms_norm(where, in);
  const Index width = in.x.size(-1);
  check_tensor(where, "grad_y", grad_y, in.x.shape(), in.x.dtype());
  check_optional(where, "the gradient of x", out.x, in.x.shape(), in.x.dtype());
  check_optional(where, "the gradient of z", out.z, in.z.shape(), in.x.dtype());
  check_optional(where, "the gradient of weight", out.weight, {width}, in.x.dtype());
  dispatch_float(in.x.dtype(), where, [&]<class T>(T) {
    const auto kernel = rows_of<T>(in);
    const T* grad = data_of<const T>(grad_y);
    T *grad_x = data_of<T>(out.x), *grad_z = data_of<T>(out.z), *grad_weight = data_of<T>(out.weight);
    for_row_blocks(ctx, in.x.shape().rows(), grad_weight ? width : 0, grad_weight,
                   [&](Index first, Index rows, T* sums, Arena& scratch) {
                     const Index at = first * width;
                     auto part = kernel;
                     part.x = moved(part.x, at);
                     part.z = moved(part.z, at);
                     rms_norm_backward_rows(part, grad + at, rows,
                                            {moved(grad_x, at), moved(grad_z, at), grad_weight ? sums : nullptr,
                                             scratch.allocate<T>(2 * part.group)});
                   });
  });
}

void sum_norm(Context& ctx, const Tensor& x, const Tensor& y) {
  check_input("sum_norm", x, 0);
  check_tensor("sum_norm", "y", y, x.shape(), x.dtype());
  dispatch_float(x.dtype(), "sum_norm", [&]<class T>(T) {
    const T* from = data_of<const T>(x);
    T* to = data_of<T>(y);
    const Index width = x.size(-1);
    for_row_tasks(ctx, x.shape().rows(), width, [&](Index first, Index rows) {
      sum_norm_rows(from + first * width, rows, width, to + first * width);
    });
  });
}

void sum_norm_backward(Context& ctx, const Tensor& x, const Tensor& grad_y, const Tensor& grad_x) {
  check_input("sum_norm_backward", x, 0);
  check_tensor("sum_norm_backward", "grad_y", grad_y, x.shape(), x.dtype());
  check_tensor("sum_norm_backward", "the gradient of x", grad_x, x.shape(), x.dtype());
  dispatch_float(x.dtype(), "sum_norm_backward", [&]<class T>(T) {
    const T *at = data_of<const T>(x), *from = data_of<const T>(grad_y);
    T* to = data_of<T>(grad_x);
    const Index width = x.size(-1);
    for_row_tasks(ctx, x.shape().rows(), width, [&](Index first, Index rows) {
      sum_norm_backward_rows(at + first * width, from + first * width, rows, width, to + first * width);
    });
  });
}

void layer_norm(Context& ctx, const LayerNormInputs& in, const Tensor& y) {
  check_layer_norm("layer_norm", in);
  check_tensor("layer_norm", "y", y, in.x.shape(), in.x.dtype());
  dispatch_float(in.x.dtype(), "layer_norm", [&]<class T>(T) {
    const auto kernel = rows_of<T>(in);
    T* out = data_of<T>(y);
    const Index width = in.x.size(-1);
    for_row_tasks(ctx, in.x.shape().rows(), width, [&](Index first, Index rows) {
      auto part = kernel;
      part.x += first * width;
      layer_norm_rows(part, rows, out + first * width);
    });
  });
}

void layer_norm_backward(Context& ctx, const LayerNormInputs& in, const Tensor& grad_y, const LayerNormGradients& out) {
  const char* where = "layer_norm_backward";
  check_layer_norm(where, in);
  const Index width = in.x.size(-1);
  check_tensor(where, "grad_y", grad_y, in.x.shape(), in.x.dtype());
  check_optional(where, "the gradient of x", out.x, in.x.shape(), in.x.dtype());
  check_optional(where, "the gradient of weight", out.weight, {width}, in.x.dtype());
  check_optional(where, "the gradient of bias", out.bias, {width}, in.x.dtype());
  dispatch_float(in.x.dtype(), where, [&]<class T>(T) {
    const auto kernel = rows_of<T>(in);
    const T* grad = data_of<const T>(grad_y);
    T *grad_x = data_of<T>(out.x), *grad_weight = data_of<T>(out.weight), *grad_bias = data_of<T>(out.bias);
    const Index parameters = (grad_weight ? width : 0) + (grad_bias ? width : 0);
    ArenaScope scope(ctx.scratch());
    T* total = ctx.scratch().allocate<T>(parameters);  // weight, then bias
    for_row_blocks(ctx, in.x.shape().rows(), parameters, total, [&](Index first, Index rows, T* sums, Arena& scratch) {
      auto part = kernel;
      part.x += first * width;
      layer_norm_backward_rows(part, grad + first * width, rows,
                               {moved(grad_x, first * width), grad_weight ? sums : nullptr,
                                grad_bias ? sums + parameters - width : nullptr, scratch.allocate<T>(2 * part.group)});
    });
    if (grad_weight) std::copy_n(total, width, grad_weight);
    if (grad_bias) std::copy_n(total + parameters - width, width, grad_bias);
  });
}

}  // namespace stepwell::ops
