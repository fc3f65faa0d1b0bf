// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/train/task.h"

namespace stepwell::cli {

// Figures of held-out data on stdout: a table that sets the model beside the simple predictors its task names (unigram,
// persistence …), or one JSON object.
void print_figures(const train::Figures& figures, bool json);

}  // namespace stepwell::cli
