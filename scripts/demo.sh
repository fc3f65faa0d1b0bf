#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# Builds what they need and runs the two demonstrations: seeing through noise, and a language model over bytes, trained
# on the licence texts of this system with the MPL family held out, or on text of your own:
#   scripts/demo.sh [--text FILE|FOLDER…]
# Writes to build/ only.
set -euo pipefail
texts=(/usr/share/common-licenses)
hold_out=(--hold-out 'MPL*')
if [ "${1:-}" = --text ] && [ $# -gt 1 ]; then
  shift
  texts=()
  for path in "$@"; do texts+=("$(realpath -- "$path")"); done
  hold_out=()
elif [ $# -gt 0 ]; then
  echo "usage: ${0##*/} [--text FILE|FOLDER…]" >&2
  exit 2
fi
cd "$(dirname "$0")/.."
stepwell=build/release/cli/stepwell
run=build/demo
title() { printf '\n\033[1m%s\033[0m\n' "$*"; }

title '[1/6] Packages'
scripts/install_packages.sh build test
title '[2/6] Build (build/release)'
scripts/build.sh release stepwell_cli regimes

title '[3/6] Seeing through noise (examples/regimes)'
build/release/examples/regimes

title "[4/6] A language model over bytes, trained on ${texts[*]}"
rm -rf "$run"
"$stepwell" train examples/bytes.toml --text "${texts[@]}" "${hold_out[@]}" --out "$run"
