// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/command.h"

namespace stepwell::cli {

// Prints how far the forms of the mLSTM layer are from one another and from golden results, by length and by tensor;
// returns the exit status. `cases`: a folder of them; empty: the checkout's, if it is there.
int run_equivalence(const std::string& cases, bool json);

}  // namespace stepwell::cli
