#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# clang-tidy-19 with the checks of .clang-tidy over the sources, or over the files given. The *_simd.cc are left out:
# each is compiled once per instruction set, and its checks would read Highway's macros more than our code.
set -euo pipefail
cd "$(dirname "$0")/../.."
cmake --preset asan >/dev/null # for its compile_commands.json, which is clang's
if [ $# -eq 0 ]; then
  mapfile -t files < <(git ls-files -co --exclude-standard 'src/*.cc' 'cli/*.cc' 'examples/*.cc' ':!*_simd.cc')
  set -- "${files[@]}"
fi
printf '%s\0' "$@" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy-19 -p build/asan --quiet --warnings-as-errors='*' 2> >(grep -v 'warnings generated' >&2)
