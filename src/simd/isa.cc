// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/simd/isa.h"

#include <cstdlib>
#include <string>

#include "hwy/targets.h"

#include "stepwell/core/context.h"
#include "stepwell/core/error.h"

namespace stepwell::simd {

namespace {

struct Row {
  Isa isa;
  std::string_view name;
  std::int64_t target;
};
// Best first.
constexpr Row kRows[] = {{Isa::Avx3, "avx3", HWY_AVX3},
                         {Isa::Avx2, "avx2", HWY_AVX2},
                         {Isa::Neon, "neon", HWY_NEON},
                         {Isa::Sse4, "sse4", HWY_SSE4},
                         {Isa::Scalar, "scalar", HWY_SCALAR}};

// What was compiled and the processor can run, whatever is set at the moment.
std::int64_t machine_targets() {
  static const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets | HWY_SCALAR;
}

Isa& chosen() {
  static Isa isa = [] {
    Isa best = supported_isas().front();
    if (const char* wanted = std::getenv("STEPWELL_ISA"); wanted && *wanted) {
      bool found = false;
      std::string names;
      for (const Row& row : kRows) {
        names += (names.empty() ? "" : ", ") + std::string(row.name);
        if (row.name == wanted) {
          found = true;
          best = row.isa;
        }
      }
      if (!found)
        fail(ErrorCode::Argument, "STEPWELL_ISA", "is \"" + std::string(wanted) + "\", expected one of " + names);
    }
    return best;
  }();
  return isa;
}

void apply(Isa isa) {
  for (const Row& row : kRows) {
    if (row.isa != isa) continue;
    if (!(machine_targets() & row.target)) {
      fail(ErrorCode::Unsupported, "set_isa", "this processor has no " + std::string(row.name));
    }
    hwy::SetSupportedTargetsForTest(row.target);
    hwy::GetChosenTarget().Update(row.target);
  }
}

}  // namespace

std::string_view isa_name(Isa isa) noexcept {
  for (const Row& row : kRows) {
    if (row.isa == isa) return row.name;
  }
  return "?";
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (const Row& row : kRows) {
    if (machine_targets() & row.target) isas.push_back(row.isa);
  }
  return isas;
}

Isa current_isa() {
  static const bool applied = (apply(chosen()), true);
  (void)applied;
  return chosen();
}

void set_isa(Isa isa) {
  current_isa();
  apply(isa);
  chosen() = isa;
}

bool has_fma(Isa isa) noexcept { return isa != Isa::Sse4; }

}  // namespace stepwell::simd

namespace stepwell {

void select_instruction_set() { simd::current_isa(); }

}  // namespace stepwell
