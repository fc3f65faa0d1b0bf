// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/verify/verify.h"

#include <algorithm>

#include "stepwell/layers/registry.h"

#include "verify/case_file.h"
#include "verify/promises.h"

namespace stepwell::verify {

void verify_subjects(const std::vector<Subject*>& variants, const Options& options, Report& report) {
  for (const Promise& promise : promises()) {
    if (promise.needs_model && variants.front()->mixer.empty()) continue;
    Tally tally;
    Check check;
    try {
      for (Subject* subject : variants) promise.measure(*subject, options, tally);
      check = tally.finish(variants.front()->name, promise.name);
    } catch (const Error& error) {
      check = tally.finish(variants.front()->name, promise.name);
      check.outcome = Outcome::Fail;
      check.reason = error.what();
    }
    if (options.on_check) options.on_check(check);
    report.add(std::move(check));
  }
}

Report run(const Options& options) {
  Report report;
  if (!options.inputs.empty()) {
    verify_inputs(options.inputs, options.chunk, options, report);
    return report;
  }
  for (const std::string& folder : options.case_folders) case_paths(folder);  // a wrong one is found before any work
  std::vector<Subject> subjects = all_subjects();
  std::vector<std::string> names;
  for (const Subject& s : subjects) {
    if (std::find(names.begin(), names.end(), s.name) == names.end()) names.push_back(s.name);
  }
  auto short_name = [](const std::string& name) { return name.substr(name.find(' ') + 1); };
  bool found = options.layer.empty();
  for (const std::string& name : names) {
    if (!options.layer.empty() && short_name(name) != options.layer) continue;
    found = true;
    std::vector<Subject*> variants;
    for (Subject& s : subjects) {
      if (s.name == name) variants.push_back(&s);
    }
    verify_subjects(variants, options, report);
  }
  if (!found) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + short_name(name);
    fail(ErrorCode::Argument, "verify", "no layer or op \"" + options.layer + "\"; there are " + all);
  }
  for (const std::string& folder : options.case_folders) verify_cases(folder, options, report);
  return report;
}

}  // namespace stepwell::verify
