// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/equivalence.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "stepwell/io/file.h"
#include "stepwell/io/json.h"
#include "stepwell/verify/equivalence.h"

#include "cli/table.h"

namespace stepwell::cli {

namespace {

constexpr const char* kGolden = "tests/golden/xlstm";  // in a checkout

std::string figure(double x) {
  char text[32];
  std::snprintf(text, sizeof text, x == 0 ? "0" : "%.1e", x);
  return text;
}

// The worst of some rows.
struct Worst {
  double mean = 0, largest = 0;
  std::string at;
  bool within = true;

  void add(const verify::EquivalenceRow& row) {
    mean = std::fmax(mean, row.mean);
    if (row.largest >= largest) {
      largest = row.largest;
      at = row.tensor;
    }
    within = within && row.within();
  }
};

bool of_gradient(const verify::EquivalenceRow& row) { return row.tensor.starts_with("gradient"); }

// One line per comparison, type and length.
void print_by_length(const verify::Equivalence& result, std::FILE* out) {
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::pair<Worst, Worst>> lines;
  for (const verify::EquivalenceRow& row : result.rows) {
    auto& [values, gradients] = lines[{row.comparison, std::string(dtype_name(row.dtype)), row.time}];
    (of_gradient(row) ? gradients : values).add(row);
  }
  Table table({"comparison", "type", ">T", ">values mean", ">max", ">gradients mean", ">max", "at", ""});
  for (const auto& [key, both] : lines) {
    const auto& [comparison, dtype, time] = key;
    const auto& [values, gradients] = both;
    table.row({comparison, dtype, std::to_string(time), figure(values.mean), figure(values.largest),
               figure(gradients.mean), figure(gradients.largest), gradients.at,
               values.within && gradients.within ? "" : "BEYOND"});
  }
  table.print(out);
}

// One line per tensor, the worst of all lengths and comparisons.
void print_by_tensor(const verify::Equivalence& result, std::FILE* out) {
  std::map<std::string, std::map<std::string, Worst>> lines;
  for (const verify::EquivalenceRow& row : result.rows) {
    const std::string kind = row.comparison.starts_with("golden") ? "golden " : "forms ";
    lines[row.tensor][kind + std::string(dtype_name(row.dtype))].add(row);
  }
  Table table({"tensor", ">forms F32", ">forms F64", ">golden F32", ">golden F64", ""});
  for (auto& [tensor, worst] : lines) {
    const auto cell = [&](const char* key) {
      return worst.contains(key) ? figure(worst[key].largest) : std::string("-");
    };
    const bool within = std::ranges::all_of(worst, [](const auto& entry) { return entry.second.within; });
    table.row(
        {tensor, cell("forms F32"), cell("forms F64"), cell("golden F32"), cell("golden F64"), within ? "" : "BEYOND"});
  }
  table.print(out);
}

}  // namespace

int run_equivalence(const std::string& cases, bool json) {
  const std::string folder = !cases.empty()                                                    ? cases
                             : io::file_exists(std::string(kGolden) + "/cell_T01.safetensors") ? kGolden
                                                                                               : "";
  const verify::Equivalence result = verify::measure_equivalence(folder);
  std::FILE* out = json ? stderr : stdout;
  std::fprintf(out, "mean: of |difference|; max: of |difference| / max|expected|\n\n");
  print_by_length(result, out);
  std::fprintf(out, "\n");
  print_by_tensor(result, out);
  const auto beyond = std::ranges::count_if(result.rows, [](const auto& row) { return !row.within(); });
  std::fprintf(out, "\n%s comparisons of tensors, %lld beyond their bounds\n",
               with_commas(static_cast<long long>(result.rows.size())).c_str(), static_cast<long long>(beyond));
  if (!result.not_run.empty()) std::fprintf(out, "NOT RUN: %s\n", printable(result.not_run).c_str());
  if (json) std::printf("%s\n", io::to_json(result.to_config()).c_str());
  return result.passed() ? kSuccess : kFailure;
}

Action declare_equivalence(Options& options) {
  struct Arguments {
    std::string cases;
    bool json = false;
  };
  const auto a = std::make_shared<Arguments>();
  options.text("--cases", a->cases, "FOLDER",
               "Golden cases of the mLSTM (default: tests/golden/xlstm, if it is there)");
  options.json(a->json);
  return [a] { return run_equivalence(a->cases, a->json); };
}

}  // namespace stepwell::cli
