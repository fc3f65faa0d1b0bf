// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "stepwell/verify/verify.h"

#include "verify/tally.h"

namespace stepwell::verify {

// One promise: how it is measured on one variant of a subject.
struct Promise {
  const char* name;
  void (*measure)(Subject& subject, const Options& options, Tally& tally);
  bool needs_model;  // about models built of a registered mixer: not for ops
};

std::span<const Promise> promises();

// What the promises are measured with: pseudo-random token rows and states that depend on (name, shape) only.
Tensor random_tensor(const Shape& shape, DType dtype, const char* name, double deviation = 1);
layers::State random_state(const layers::Layer& layer, std::int64_t sequences, const char* name);

// The promises about models (X5, X6), in model_promises.cc.
void measure_save_and_load(Subject& subject, const Options& options, Tally& tally);
void measure_allocations(Subject& subject, const Options& options, Tally& tally);

}  // namespace stepwell::verify
