// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

int main(int argc, char** argv) {
  using namespace stepwell::cli;
  static constexpr Command kCommands[] = {
      {"info", "Show version, instruction set, threads and build options", declare_info},
  };
  return run_command_line(kCommands, argc, argv);
}
