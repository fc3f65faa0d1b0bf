// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

int main(int argc, char** argv) {
  using namespace stepwell::cli;
  static constexpr Command kCommands[] = {
      {"train", "Train a model on text, a series or a task by name", declare_train},
      {"distill", "Teach a recurrent memory step by step, without unrolling it", declare_distill},
      {"eval", "Measure a model on held-out data", declare_eval},
      {"forecast", "Predict the next values of a series", declare_forecast},
      {"generate", "Continue a text, byte by byte", declare_generate},
      {"inspect", "Show what a file or a model folder holds", declare_inspect},
      {"verify", "Measure the promises on this machine; exit 1 if one fails", declare_verify},
      {"equivalence", "Compare the forms of the mLSTM, tensor by tensor; exit 1 beyond the bounds",
       declare_equivalence},
      {"bench", "Measure speeds beside this machine's limits", declare_bench},
      {"report", "Write one HTML page about a run, or a comparison of several", declare_report},
      {"info", "Show version, instruction set, threads and build options", declare_info},
  };
  return run_command_line(kCommands, argc, argv);
}
