// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "stepwell/io/page.h"

#include "cli/report/distill_record.h"
#include "cli/report/run_record.h"

namespace stepwell::cli {

// The page of one training run, and of several side by side.
io::HtmlPage run_page(const RunRecord& run);
io::HtmlPage comparison_page(std::span<const RunRecord> runs);

// The same of runs of `stepwell distill`.
io::HtmlPage distill_page(const DistillRecord& run);
io::HtmlPage distill_comparison_page(std::span<const DistillRecord> runs);

// The figures in a file that `stepwell bench --memory --json` printed. Throws Error (File) for any other file.
io::HtmlPage bench_page(const std::string& path);

}  // namespace stepwell::cli
