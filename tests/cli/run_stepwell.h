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

// The same, sent `signal` as soon as `file` exists.
CommandResult interrupt_stepwell(const std::vector<std::string>& arguments, const std::string& file, int signal);

// The same with a standard output that takes nothing, as of a full disk.
CommandResult run_stepwell_to_full_disk(const std::vector<std::string>& arguments);

}  // namespace stepwell::cli
