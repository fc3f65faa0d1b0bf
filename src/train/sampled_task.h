// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "stepwell/train/sequence_task.h"

namespace stepwell::train {

// A forecaster trained on fresh sequences of a task by name, and judged by sequences of the same length that are never
// trained on. Losses: mean square error, or the logistic loss of the signs asked for. Figures: mse or accuracy, the
// task's baselines, sequences.
class SampledTask : public Task {
 public:
  SampledTask(std::string name, std::unique_ptr<SequenceTask> task, std::int64_t seed, std::int64_t length,
              std::int64_t held_out);

  std::vector<std::string_view> model_types() const override { return {"forecaster"}; }
  void complete(Config& model) const override;
  Variable loss(Context& ctx, const models::Model& model, std::int64_t first, std::int64_t count,
                const Rng* dropout_rng) const override;
  Figures evaluate(Context& ctx, const models::Model& model, std::int64_t most) const override;
  std::string fingerprint() const override;
  std::string describe() const override;

 private:
  std::string name_;
  std::unique_ptr<SequenceTask> task_;
  std::int64_t seed_, length_, held_out_;
};

}  // namespace stepwell::train
