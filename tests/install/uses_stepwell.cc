// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// A user of the whole library, with stepwell::stepwell: a gradient, on several threads.
#include <cstdio>
#include <exception>

#include "stepwell/autograd/functions.h"
#include "stepwell/autograd/variable.h"
#include "stepwell/core/context.h"
#include "stepwell/core/tensor.h"

int main() try {
  using namespace stepwell;
  Context ctx = Context::parallel(2);
  const Variable x = Variable::leaf(Tensor::full({100, 100}, 1.5));
  const Tensor gradient = backward(ctx, sum(ctx, mul(ctx, x, x))).of(x);
  if (gradient.at(9999) != 3) return std::printf("d(x·x)/dx at 1.5 is %g, expected 3\n", gradient.at(9999)), 1;
  std::printf("stepwell::stepwell: a gradient on %d threads\n", ctx.threads());
  return 0;
} catch (const std::exception& error) {
  return std::printf("%s\n", error.what()), 1;
}
