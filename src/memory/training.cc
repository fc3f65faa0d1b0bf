// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/training.h"

#include <cmath>

namespace stepwell::memory {

train::AdamReport LazyAdam::step(Context& ctx, const std::vector<layers::Parameter*>& parameters, const Variable& loss,
                                 double lr) {
  if (!adam_) adam_.emplace(parameters, options_);
  if (!std::isfinite(loss.value().at(0))) {
    adam_->skip();
    return {.gradient_norm = loss.value().at(0), .skipped = true};
  }
  return adam_->step(ctx, backward(ctx, loss), lr);
}

void LazyAdam::set_state(const std::vector<layers::Parameter*>& parameters, const layers::NamedTensors& state) {
  if (state.empty()) return reset();
  train::Adam adam(parameters, options_);
  adam.set_state(state);
  adam_ = std::move(adam);
}

}  // namespace stepwell::memory
