// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// An embedder: ops on its own tensors through stepwell::infer, no autograd.
#include <cstdio>

#include "stepwell/core/context.h"
#include "stepwell/core/tensor.h"
#include "stepwell/ops/elementwise.h"
#include "stepwell/simd/isa.h"

int main() {
  using stepwell::Tensor;
  stepwell::Context ctx = stepwell::Context::serial();
  const Tensor a = Tensor::full({3, 5}, 1.5), b = Tensor::full({3, 5}, 0.25), sum = Tensor::empty({3, 5});
  stepwell::ops::add(ctx, a, b, sum);
  for (int i = 0; i < 15; ++i) {
    if (sum.at(i) != 1.75) return std::printf("element %d is %g, expected 1.75\n", i, sum.at(i)), 1;
  }
  std::printf("stepwell::infer works on %s\n",
              std::string(stepwell::simd::isa_name(stepwell::simd::current_isa())).c_str());
}
