// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/memory/distillation.h"

namespace stepwell::memory {

// The report's parts that are measured on held-out sequences: "memory", "drift", "errors", "trajectories".
// `teacher` may be null; `first_readout` is the readout before it was refitted, or undefined.
Config::Object evaluate(Context& ctx, const DistillRecipe& recipe, const train::SequenceTask& task,
                        const MemoryUpdater& cell, const SetEncoderTeacher* teacher, const Tensor& first_readout);

// The rounds as the report has them; `variance` of the teacher's memory.
Config rounds_report(const std::vector<RoundReport>& rounds, double variance);

Config finite_or_null(double x);  // JSON has no NaN

}  // namespace stepwell::memory
