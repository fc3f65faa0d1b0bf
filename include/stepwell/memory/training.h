// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "stepwell/autograd/variable.h"
#include "stepwell/layers/module.h"
#include "stepwell/train/adam.h"

// What teachers and updaters share: how a step reports, and an optimiser that is made when first used.
namespace stepwell::memory {

// What one training step did. A loss or a gradient that is not finite skips the step: every bit of parameters and
// optimiser but its count of skipped steps stays.
struct UpdateReport {
  double memory_loss = 0;    // mean (memory − target)²
  double readout_loss = 0;   // mean (prediction − what came next)²
  double gradient_norm = 0;  // before clipping
  bool clipped = false, skipped = false;
};

inline constexpr double kClipNorm = 1;  // largest global L2 norm of a step's gradient

// Adam over some parameters, made at its first step, so that it follows the dtype they have by then.
class LazyAdam {
 public:
  explicit LazyAdam(train::AdamOptions options = {.clip_norm = kClipNorm}) : options_(options) {}

  // One step down the gradient of `loss`.
  train::AdamReport step(Context& ctx, const std::vector<layers::Parameter*>& parameters, const Variable& loss,
                         double lr);
  void reset() { adam_.reset(); }
  // Nothing before the first step.
  layers::NamedTensors state() const { return adam_ ? adam_->state() : layers::NamedTensors{}; }
  void set_state(const std::vector<layers::Parameter*>& parameters, const layers::NamedTensors& state);

 private:
  train::AdamOptions options_;
  std::optional<train::Adam> adam_;
};

}  // namespace stepwell::memory
