// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/verify/verify.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

#include "stepwell/io/json.h"

#include "cli/command.h"

namespace {

// Counted so that "a step allocates nothing" (X6) is measured on this very program.
std::atomic<std::int64_t> g_heap_allocations{0};

void* counted_allocation(std::size_t size, std::size_t alignment) {
  g_heap_allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
  if (void* p = std::aligned_alloc(alignment, rounded)) return p;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return counted_allocation(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted_allocation(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace stepwell::cli {

namespace {

struct VerifyCommand {
  std::string layer;
  std::vector<std::string> cases;
  bool json = false;

  int run() const {
    verify::Options options;
    options.layer = layer;
    options.case_folders = cases;
    options.heap_allocations = [] { return g_heap_allocations.load(std::memory_order_relaxed); };
    std::FILE* lines = json ? stderr : stdout;  // with --json, stdout is for the machine alone
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
  options.json(command->json);
  return [command] { return command->run(); };
}

}  // namespace stepwell::cli
