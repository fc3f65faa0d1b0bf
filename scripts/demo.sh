#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# Builds what they need and runs the two demonstrations: seeing through noise, and a language model over bytes, trained
# on the licence texts of this system with the MPL family held out, or on text of your own with its end held out:
#   scripts/demo.sh [--text FILE|FOLDER…]
# Writes to build/ only; exit status 1 if a mark is missed.
set -euo pipefail

texts=(/usr/share/common-licenses)
own_text=false
if [ "${1:-}" = --text ] && [ $# -gt 1 ]; then
  shift
  own_text=true
  texts=()
  for path in "$@"; do texts+=("$(realpath -- "$path")"); done
elif [ $# -gt 0 ]; then
  echo "usage: ${0##*/} [--text FILE|FOLDER…]" >&2
  exit 2
fi

cd "$(dirname "$0")/.."
stepwell=build/release/cli/stepwell
out=build/demo
run=$out/run
marks_missed=0
title() { if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n\n' "$*"; else printf '\n%s\n\n' "$*"; fi; }

title '[1/6] Packages'
scripts/install_packages.sh build test
echo 'Everything needed is installed.'

title '[2/6] Build (build/release)'
scripts/build.sh release stepwell_cli regimes

title '[3/6] Seeing through noise (examples/regimes)'
build/release/examples/regimes || marks_missed=1

title "[4/6] A language model over bytes, trained on ${texts[*]}"
rm -rf "$out"
mkdir -p "$out"
if $own_text; then
  "$stepwell" train recipes/licenses.toml --text "${texts[@]}" --set 'data.hold_out=""' --out "$run"
else
  "$stepwell" train recipes/licenses.toml --out "$run"
fi

title '[5/6] Held-out text: the model beside a unigram model and xz -9'
# The same files, in the same order, as the run has them.
find "${texts[@]}" -name '.*' -prune -o -type f -size +0 -print0 | LC_ALL=C sort -zu >"$out/files"
if $own_text; then
  xargs -0 cat <"$out/files" >"$out/all"
  held_bytes=$(($(stat -c %s "$out/all") / 10)) # hold_out_fraction is 0.1
  head -c "-$held_bytes" "$out/all" >"$out/train"
else
  grep -zv '/MPL[^/]*$' "$out/files" | xargs -0 cat >"$out/train"
  grep -z '/MPL[^/]*$' "$out/files" | xargs -0 cat "$out/train" >"$out/all"
fi
compressed() { xz -9 -c "$1" | wc -c; }
xz_bytes=$(($(compressed "$out/all") - $(compressed "$out/train")))
"$stepwell" eval "$run" --json | tr -d ' ",{}' | awk -F: -v xz_bytes=$xz_bytes -v gate="$own_text" '
  NF == 2 { figure[$1] = $2 }
  END {
    model = figure["bits_per_byte"]
    unigram = figure["unigram"]
    printf "  unigram model   %.3f bits per byte\n", unigram
    printf "  xz -9           %.3f (what the held-out text adds to the compressed training text)\n", 8 * xz_bytes / figure["bytes"]
    printf "  this model      %.3f = %.3f of the unigram model", model, model / unigram
    if (gate == "true") { printf "\n"; exit 0 }
    passed = model <= 0.65 * unigram
    printf "   <= 0.65   %s\n", passed ? "PASS" : "FAIL"
    exit !passed
  }' || marks_missed=1

title '[6/6] It writes; and a stream saved, restored in a new process and continued gives the same bytes'
generate() { "$stepwell" generate "$run" --seed 1 "$@"; }
generate --prompt 'You may' --bytes 600 >"$out/whole"
generate --prompt 'You may' --bytes 300 --save-stream "$out/stream" >"$out/first"
generate --load-stream "$out/stream" --bytes 300 >"$out/second"
tr -c '[:print:]\n' '?' <"$out/whole"
printf '\n\n'
if cat "$out/first" "$out/second" | cmp - "$out/whole"; then
  echo '  300 bytes, saved, 300 bytes in a new process = 600 bytes at once   PASS'
else
  echo '  300 bytes, saved, 300 bytes in a new process = 600 bytes at once   FAIL'
  marks_missed=1
fi

if [ $marks_missed -ne 0 ]; then
  printf '\nNOT every mark was reached.\n'
  exit 1
fi
printf '\nEvery mark was reached. The trained model is in %s; go on with\n  %s generate %s --prompt "This License"\n' \
  "$run" "$stepwell" "$run"
