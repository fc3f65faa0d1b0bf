// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "stepwell/layers/mamba.h"

namespace stepwell::memory {

// A Mamba block stepped token by token, built from its named tensors alone: every extent is read off their shapes. The
// kernels are those of layers::Mamba, so that stepping a window from a fresh state gives the bits of its forward pass.
class MambaRecurrence {
 public:
  // Tensors under the names of layers::Mamba, biases optional; F32. Throws Error naming every tensor that is missing,
  // unknown or of a shape that does not fit the others. What shapes do not show is as in the published block: Euler's
  // discretisation and no norm inside.
  MambaRecurrence(Context& ctx, const layers::NamedTensors& tensors);

  const layers::Mamba& block() const { return *block_; }
  // A state of zeros: conv_state and ssm_state.
  layers::State fresh_state(std::int64_t batch = 1) const { return block_->zero_state(batch); }
  // x [B, width] → y [B, width]; `state` moves on.
  Tensor step(Context& ctx, layers::State& state, const Tensor& x) const;

 private:
  std::unique_ptr<layers::Mamba> block_;
};

}  // namespace stepwell::memory
