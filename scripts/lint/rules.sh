#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# What a search can decide: SPDX lines, length and names of files, words and functions that have no place in the code.
set -euo pipefail
cd "$(dirname "$0")/../.."
faults=0
report() {
  if [ -n "$1" ]; then
    printf '%s\n%s\n' "$2:" "$1" | sed '2,$s/^/  /'
    faults=1
  fi
}
files() { git ls-files -co --exclude-standard -- "$@"; }
code=$(files '*.h' '*.cc' '*.sh' '*.py')

# absent MESSAGE PATTERN PATHSPEC…: the extended regular expression must match no line of these files.
absent() {
  local message=$1 pattern=$2
  shift 2
  report "$(git grep --untracked -nE "$pattern" -- "$@" ':!scripts/lint/rules.sh' || true)" "$message"
}

spdx=$(for file in $code; do
  head -n 4 "$file" | grep -c 'SPDX-FileCopyrightText: 2026 The Stepwell authors\|SPDX-License-Identifier: Apache-2.0' |
    grep -qx 2 || echo "$file"
done)
report "$spdx" 'without the two SPDX lines'

long=$(for file in $code; do
  lines=$(wc -l <"$file")
  if [ "$lines" -gt 600 ] && ! grep -q "^$file " scripts/lint/long_files.txt; then echo "$file: $lines lines"; fi
done)
report "$long" 'over 600 lines and without a reason in scripts/lint/long_files.txt'
stale=$(while read -r file _; do
  case $file in '#') continue ;; esac
  if [ ! -f "$file" ] || [ "$(wc -l <"$file")" -le 600 ]; then echo "$file"; fi
done <scripts/lint/long_files.txt)
report "$stale" 'in scripts/lint/long_files.txt, but not over 600 lines'

wide=$(for file in $(files '*.h' '*.cc' '*.py'); do # clang-format leaves comments alone
  width=$(LC_ALL=C.UTF-8 wc -L <"$file")
  if [ "$width" -gt 120 ]; then echo "$file: $width"; fi
done)
report "$wide" 'lines over 120 columns'

pages=$(git grep --untracked -hoE '[A-Za-z0-9_./-]+\.md\b' -- '*.h' '*.cc' '*.sh' '*.cmake' '*CMakeLists.txt' | sort -u |
  while read -r page; do [ -f "$page" ] || echo "$page"; done)
report "$pages" 'pages that the code refers to and that are not here'

shown=$(sed -n '/^```cpp$/,/^```$/p' README.md | sed '1d;$d' | diff - <(tail -n +3 examples/surprise/main.cc) || true)
report "$shown" 'the program in README.md is not examples/surprise/main.cc'

foreign=$(sed -n '/^```cpp$/,/^```$/p' docs/memory-training.md | grep -v '^```' |
  grep -vFx -f examples/own_memory/main.cc || true)
report "$foreign" 'lines of code in docs/memory-training.md that are not in examples/own_memory/main.cc'

unknown=$(grep -oE '`[A-Z][A-Za-z0-9]+\.[A-Z][A-Za-z0-9_]+`' docs/capabilities.md | tr -d '`' | sort -u |
  while IFS=. read -r suite test; do
    git grep --untracked -qE "TEST(_P|_F)?\($suite, $test\)" -- tests || echo "$suite.$test"
  done)
report "$unknown" 'tests that docs/capabilities.md names and that are not there'

report "$(files | grep -E '(^|/|_)(utils?|helpers?|misc|common)(\.|/|_)' || true)" 'names that say nothing'
report "$(for file in $(files '*.h'); do
  case $file in *-inl.h) continue ;; esac # included once per instruction set
  grep -q '^#pragma once$' "$file" || echo "$file"
done)" 'headers without #pragma once'

absent 'tab, carriage return or trailing blank' "$(printf '\t|\r|[ ]$')" '*.h' '*.cc' '*.cmake' '*CMakeLists.txt' '*.md' '*.py' '*.sh' '*.toml'
absent 'later work without an issue number' '\b(TODO|FIXME|XXX)\b($|[^(]|\([^#])' .
absent 'fast-math breaks the promises of docs/numerics.md' 'fast-math|fassociative|freciprocal' '*CMakeLists.txt' '*.cmake' '*.json' '*.cc' '*.h'
absent 'global or unlisted build rules' '^ *(add_definitions|include_directories|link_libraries|add_compile_options|file\(GLOB|FetchContent)' \
  '*CMakeLists.txt' '*.cmake'
absent 'libm in kernels: its bits differ between machines; use the simd floor' \
  'std::(exp|exp2|expm1|log|log1p|log2|pow|sin|cos|tan|tanh|erf)\(' 'src/ops/*_simd.cc' 'src/ops/*-inl.h' 'src/simd/*.h'
absent 'random numbers that depend on more than their address; use Rng' \
  'std::(rand|mt19937|random_device|normal_distribution|uniform_)|[^_a-z]srand\(' 'src/*' 'include/*' 'cli/*' 'examples/*'
absent 'the library neither prints nor ends the process' 'std::(cout|cerr|printf|puts|abort|exit)\b|[^n]printf\(' 'src/*' 'include/*'
absent 'macros other than STEPWELL_* and Highway'"'"'s' '^ *# *define +(S[^T]|[A-RT-Z_]|[a-z])' 'src/*' 'include/*' ':!src/*_simd.cc'
exit $faults
