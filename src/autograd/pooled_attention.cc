// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/pooled_attention.h"

#include <vector>

#include "stepwell/autograd/functions.h"

#include "autograd/arguments.h"
#include "autograd/recording.h"

namespace stepwell {

namespace {

void pooled_attention_backward(Backward& b, const ops::PooledAttentionInputs& in,
                               std::span<const ops::RowWindow> windows) {
  if (!b.grad().defined()) return;
  const auto like = [&b](const Tensor& t) {
    return t.defined() ? Tensor::empty(b.ctx, t.shape(), t.dtype()) : Tensor();
  };
  const ops::PooledAttentionGradients out{.e = like(in.e),
                                          .q = like(in.q),
                                          .k = like(in.k),
                                          .v = like(in.v),
                                          .age_q = like(in.age_q),
                                          .age_k = like(in.age_k),
                                          .age_v = like(in.age_v)};
  ops::pooled_attention_backward(b.ctx, in, windows, b.grad(), out);
  const Tensor* all[] = {&out.e, &out.q, &out.k, &out.v, &out.age_q, &out.age_k, &out.age_v};
  for (int i = 0; i < 7; ++i) {
    if (all[i]->defined()) b.give(i, *all[i]);
  }
}

}  // namespace

Variable pooled_attention(Context& ctx, const PooledAttentionArguments& in, std::span<const ops::RowWindow> windows) {
  const char* where = "pooled_attention";
  autograd::check_float(where, "e", in.e);
  const auto value = [&ctx](const Variable& v) { return v.defined() ? v.value().contiguous(ctx) : Tensor(); };
  const ops::PooledAttentionInputs given{.e = value(in.e),
                                         .q = value(in.q),
                                         .k = value(in.k),
                                         .v = value(in.v),
                                         .age_e = in.age_e,
                                         .age_q = value(in.age_q),
                                         .age_k = value(in.age_k),
                                         .age_v = value(in.age_v),
                                         .weight = in.weight,
                                         .heads = in.heads};
  const Tensor z = Tensor::empty(ctx, {static_cast<std::int64_t>(windows.size()), in.e.size(-1)}, in.e.dtype());
  ops::pooled_attention(ctx, given, windows, z);
  if (kRecords && recording({&in.e, &in.q, &in.k, &in.v, &in.age_q, &in.age_k, &in.age_v})) {
    return record(z, {in.e, in.q, in.k, in.v, in.age_q, in.age_k, in.age_v},
                  [given, kept = std::vector<ops::RowWindow>(windows.begin(), windows.end())](Backward& b) {
                    pooled_attention_backward(b, given, kept);
                  });
  }
  return z;
}

}  // namespace stepwell
