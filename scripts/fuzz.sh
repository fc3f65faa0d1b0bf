#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# Builds the preset fuzz and runs every target of tests/fuzz from its corpus: scripts/fuzz.sh [SECONDS, default 30]
# What a target found is kept in build/fuzz/corpus, so that runs add up; a crash leaves its input in build/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-30}

scripts/build.sh fuzz fuzz_targets
targets=$(find build/fuzz/tests/fuzz -maxdepth 1 -type f -name '*_fuzz')
if [ -z "$targets" ]; then
  echo 'fuzz.sh: no fuzz target was built' >&2
  exit 1
fi
for target in $targets; do
  name=$(basename "$target" _fuzz)
  printf '\n%s: %d s\n' "$name" "$seconds"
  mkdir -p "build/fuzz/corpus/$name"
  "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build/fuzz/$name-" "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name"
done
