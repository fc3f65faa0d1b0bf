#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# Checks a binary by disassembly: no instruction beyond x86-64-v2 (VEX or EVEX: all of AVX, FMA, BMI) outside the
# functions that are called only where the processor has them, those of Highway's namespaces N_AVX2 and N_AVX3.
#   scripts/lint/baseline.sh BINARY (with its symbols)
set -euo pipefail
objdump -d --no-show-raw-insn -M att "$1" | awk '
  BEGIN {
    mask = "^k(mov|or|ortest|and|andn|xor|xnor|not|test|shiftl|shiftr|add|unpck)[bwdq]+$"
    general = "^(andn|bextr|blsi|blsr|blsmsk|bzhi|pdep|pext|mulx|rorx|sarx|shlx|shrx|lzcnt)[lq]?$"
  }
  /^[0-9a-f]+ <.*>:$/ {
    name = $2
    dispatched = name ~ /N_AVX[23]/
    functions++
    targets += dispatched
    next
  }
  # Every VEX or EVEX mnemonic starts with v, but for mask registers and the general-purpose ones of BMI. (tzcnt is bsf
  # to an older processor; compilers use it as such.)
  /^ / && !dispatched && ($2 ~ /^v[a-z]/ || $2 ~ mask || $2 ~ general || /%[yz]mm/) {
    if (++found <= 20) print name " " $0
  }
  END {
    printf "%d functions, %d of them dispatched, %d instructions beyond x86-64-v2 outside those\n", functions, targets, found
    exit found > 0 || targets == 0 || functions < 1000
  }'
