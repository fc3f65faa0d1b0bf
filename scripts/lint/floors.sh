#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# Checks what files include: their own floor and lower ones only; no third party in public headers; Highway in simd and
# *_simd.cc only; each slow header in one file only.
set -euo pipefail
cd "$(dirname "$0")/../.."
git ls-files -co --exclude-standard 'include/*.h' '*.h' '*.cc' | sort -u | xargs awk '
  function floor_of(path,   part) {
    sub(/^(include\/stepwell|stepwell|src)\//, "", path)
    part = path
    sub(/\/.*/, "", part)
    return part
  }
  function bad(message) {
    print FILENAME ":" FNR ": " message
    faults = 1
  }
  BEGIN {
    # Lowest first. io and linalg stand beside the stack: they see core only, and models and what is above see them.
    split("core simd ops autograd layers models train memory verify bench cli", order)
    for (i in order) height[order[i]] = i + 0
    height["dist"] = height["train"]
    height["tests"] = height["examples"] = height["python"] = height["cli"]
    beside["io"] = beside["linalg"] = 1
    split("CLI/CLI.hpp toml++/toml.h Eigen/Dense", slow)
    for (i in slow) is_slow[slow[i]] = 1
  }
  FNR == 1 { own = floor_of(FILENAME) }
  !/^[ \t]*#[ \t]*include/ { next }
  {
    name = $0
    sub(/^[^<"]*[<"]/, "", name)
    sub(/[>"].*/, "", name)
  }
  /</ {
    if (FILENAME ~ /^include\// && name !~ /^[a-z_]+$/) bad("public header includes <" name ">, which is not the C++ standard library")
    if (name in is_slow && own != "bench" && name in user && user[name] != FILENAME) bad("<" name "> is slow to compile and already in " user[name])
    if (name in is_slow && own != "bench") user[name] = FILENAME  # the benchmark with rivals is a program of its own
    next
  }
  name ~ /^hwy\// {
    if (own != "simd" && FILENAME !~ /_simd\.cc$/) bad("includes \"" name "\"; Highway is for simd and *_simd.cc only")
    if (FILENAME ~ /^include\//) bad("public header includes \"" name "\"")
    next
  }
  {
    other = floor_of(name)
    if (name !~ /\//) bad("includes \"" name "\", expected a path from include/, src/ or the top")
    else if (own == other) next
    else if (other in beside) {
      if (height[own] < height["models"]) bad(own " includes " other ", which only models and higher floors may")
    } else if (own in beside) {
      if (other != "core") bad(own " includes " other ", expected core only")
    } else if (!(own in height)) bad("of no known floor: " own)
    else if (!(other in height)) bad("includes \"" name "\" of no known floor")
    else if (height[other] > height[own] || (height[other] == height[own] && other != "tests")) bad(own " includes " other ", a higher floor")
  }
  END { exit faults }'
