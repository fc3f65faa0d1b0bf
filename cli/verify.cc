// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/verify/verify.h"

#include <cstdio>
#include <memory>

#include "stepwell/io/json.h"

#include "cli/command.h"
#include "cli/equivalence.h"
#include "verify/counted_heap.h"

namespace stepwell::cli {

namespace {

struct VerifyCommand {
  std::string layer;
  std::vector<std::string> cases;
  std::string inputs;
  std::int64_t chunk = 0;  // not given
  bool json = false, table = false;

  int run() const {
    if (table) {
      if (layer != "mlstm" || cases.size() > 1) {
        fail(ErrorCode::Config, "verify", "--table is for --layer mlstm, with at most one folder of cases");
      }
      return run_equivalence(cases.empty() ? "" : cases.front(), json);
    }
    if (chunk != 0 && inputs.empty()) fail(ErrorCode::Config, "verify", "--chunk goes with --inputs");
    verify::Options options;
    options.layer = layer;
    options.case_folders = cases;
    options.inputs = inputs;
    if (chunk != 0) options.chunk = chunk;
    options.heap_allocations = verify::heap_allocations;  // X6 is measured on this very program
    std::FILE* lines = json ? stderr : stdout;            // with --json, stdout is for the machine alone
    std::fprintf(lines, "%s\n", verify::Report::header().c_str());
    options.on_check = [lines](const verify::Check& check) {
      std::fprintf(lines, "%s\n", verify::Report::line(check).c_str());
      std::fflush(lines);
    };
    const verify::Report report = verify::run(options);
    std::fprintf(lines, "%s\n", report.summary().c_str());
    if (json) std::printf("%s\n", io::to_json(report.to_config(), 2).c_str());
    return report.passed() ? kSuccess : kFailure;
  }
};

}  // namespace

Action declare_verify(Options& options) {
  const auto command = std::make_shared<VerifyCommand>();
  options.text("--layer", command->layer, "NAME", "only this layer or op");
  options.texts("--cases", command->cases, true, "FOLDER", "golden cases to run as well (docs/case-files.md)");
  options.text("--inputs", command->inputs, "FILE",
               "only check the forms of the gated delta rule on these tensors (docs/gated-delta.md)");
  options.integer("--chunk", command->chunk, 1, 1 << 20, "tokens per chunk of the chunked form, with --inputs");
  options.flag("--table", command->table, "with --layer mlstm: its forms compared, tensor by tensor");
  options.json(command->json);
  return [command] { return command->run(); };
}

}  // namespace stepwell::cli
