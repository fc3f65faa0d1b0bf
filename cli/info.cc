// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "stepwell/core/config.h"
#include "stepwell/core/context.h"
#include "stepwell/io/json.h"
#include "stepwell/simd/isa.h"

#include "cli/command.h"
#include "cli/table.h"

namespace stepwell::cli {

namespace {

int info(bool json) {
  const Context ctx = Context::serial();  // applies STEPWELL_ISA
  std::string offered;
  for (const simd::Isa isa : simd::supported_isas()) {
    offered += (offered.empty() ? "" : " ") + std::string(simd::isa_name(isa));
  }
  const Config facts(Config::Object{
      {"version", STEPWELL_VERSION},
      {"instruction set", std::string(simd::isa_name(simd::current_isa()))},
      {"offered here", offered},
      {"processors", static_cast<std::int64_t>(std::thread::hardware_concurrency())},
      {"devices", "cpu"},
      {"compiler", STEPWELL_COMPILER},
      {"build type", STEPWELL_BUILD_TYPE},
      {"executor", STEPWELL_EXECUTOR},
  });
  if (json) {
    std::printf("%s\n", io::to_json(facts).c_str());
    return kSuccess;
  }
  Table table({"", ""});
  for (const auto& [name, value] : facts.as_object("info")) {
    table.row({name, value.is_string() ? value.as_string(name) : std::to_string(value.as_integer(name))});
  }
  table.print(stdout);
  return kSuccess;
}

}  // namespace

Action declare_info(Options& options) {
  const auto json = std::make_shared<bool>(false);
  options.json(*json);
  return [json] { return info(*json); };
}

}  // namespace stepwell::cli
