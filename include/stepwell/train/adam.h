// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stepwell/autograd/variable.h"
#include "stepwell/core/context.h"
#include "stepwell/layers/layer.h"

namespace stepwell::train {

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999;  // in [0, 1)
  double eps = 1e-8;                  // > 0
  double weight_decay = 0;            // ≥ 0, decoupled; only where Parameter::decay says so
  double clip_norm = 0;               // ≥ 0, largest global L2 norm of the gradient; 0: no clipping
};

// What one step did.
struct AdamReport {
  double gradient_norm = 0;  // before clipping
  bool clipped = false;
  bool skipped = false;  // the gradient was not finite: nothing changed but skipped()
};

// Adam (arXiv:1412.6980) and AdamW (arXiv:1711.05101): the one optimiser of the library. Gradients come from outside;
// nothing is random, and the bits depend neither on threads nor on the instruction set.
class Adam {
 public:
  // Optimises `parameters`, which must outlive it. Throws Error for options out of range.
  Adam(std::vector<layers::Parameter*> parameters, const AdamOptions& options);

  // One step with learning rate `lr` ≥ 0. gradients[i] belongs to parameter i; an undefined one leaves its parameter
  // and moments as they are. Parameters are updated in place, their packed copies dropped. A gradient whose norm is not
  // finite skips the step: every bit of parameters and moments stays. Throws Error for a wrong count, shape or dtype.
  AdamReport step(Context& ctx, std::span<const Tensor> gradients, double lr);
  AdamReport step(Context& ctx, const Gradients& gradients, double lr);

  // Counts a step that was skipped before it had a gradient, since its loss was not finite.
  void skip() { ++skipped_; }

  std::int64_t steps() const { return steps_; }  // accepted
  std::int64_t skipped() const { return skipped_; }

  // Everything a later process needs to go on with the same bits: adam.steps, adam.skipped (I64 [1]), adam.beta_powers
  // (F64 [2]: β1^t, β2^t), adam.m.NAME and adam.v.NAME for every parameter. state() shares the moments' memory.
  layers::NamedTensors state() const;
  // Takes a state() back (copied). Checks every name, shape and dtype first, lists all faults in one Error and changes
  // nothing unless all is well.
  void set_state(const layers::NamedTensors& state);

 private:
  std::vector<layers::Parameter*> parameters_;
  AdamOptions options_;
  std::vector<Tensor> m_, v_;
  std::int64_t steps_ = 0, skipped_ = 0;
  double power1_ = 1, power2_ = 1;  // β1^t, β2^t: multiplied once per accepted step
};

}  // namespace stepwell::train
