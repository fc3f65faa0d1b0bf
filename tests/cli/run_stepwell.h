// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace stepwell::cli {

struct CommandResult {
  int status = -1;  // exit status; −signal if a signal ended it
  std::string out, err;
};

// Runs the tool with these arguments and waits for it. Its standard input is `input`.
CommandResult run_stepwell(const std::vector<std::string>& arguments, const std::string& input = "");

// The same, interrupted (SIGINT) as soon as `file` exists.
CommandResult interrupt_stepwell(const std::vector<std::string>& arguments, const std::string& file);

}  // namespace stepwell::cli
