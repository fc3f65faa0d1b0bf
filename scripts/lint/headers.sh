#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# Compiles every header alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
git ls-files -co --exclude-standard '*.h' ':!python/*' | # those need nanobind
  xargs -n 4 -P "$(nproc)" sh -c '
  for header; do
    echo "#include \"$header\"" |
      clang++-19 -std=c++20 -fsyntax-only -Wall -Wextra -Wno-unused-function -DSTEPWELL_RECORDS_GRADIENTS=1 \
        -DSTEPWELL_TEST_DATA=\"\" -I. -Iinclude -Isrc -x c++ - || { echo "$header does not compile alone"; exit 1; }
  done' headers
