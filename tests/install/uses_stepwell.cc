// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// A user of the whole library: the parallel executor.
#include <cstdio>

#include "stepwell/core/context.h"
#include "stepwell/core/tensor.h"
#include "stepwell/ops/elementwise.h"

int main() {
  using stepwell::Tensor;
  stepwell::Context ctx = stepwell::Context::parallel(2);
  const Tensor x = Tensor::full({100000}, 1.5), y = Tensor::empty({100000});
  stepwell::ops::add(ctx, x, x, y);
  if (y.at(99999) != 3) return std::printf("x + x is %g, expected 3\n", y.at(99999)), 1;
  std::printf("stepwell::stepwell works with %d threads\n", ctx.threads());
}
