#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# Installs the release build into a scratch folder and builds tests/install, a user's project, against it: through
# CMake's package, through pkg-config, and with Stepwell's sources as a subdirectory.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/build/install
prefix=$out/prefix
rm -rf "$out"

scripts/build.sh release stepwell_ops stepwell_infer stepwell_full stepwell_cli
cmake --install build/release --prefix "$prefix" >/dev/null
"$prefix/bin/stepwell" --version

consume() {  # consume NAME ARGUMENT…: configures, builds and runs the consumer
  local name=$1
  shift
  printf '\nThrough %s\n' "$name"
  cmake -S tests/install -B "$out/$name" -G Ninja "$@" >/dev/null
  cmake --build "$out/$name"
  ctest --test-dir "$out/$name" --output-on-failure
}
consume package -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix"

printf '\nThrough pkg-config\n'
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig:$(echo "$prefix"/lib/*/pkgconfig)
for library in infer stepwell; do
  module=${library/infer/stepwell-infer}
  # shellcheck disable=SC2046  # the flags are words
  c++ -std=c++20 tests/install/uses_$library.cc -o "$out/uses_$library" $(pkg-config --cflags --libs "$module")
  "$out/uses_$library"
done

# The flags of the preset, so that ccache finds what it compiled.
launcher=$(command -v ccache || true)
consume subdirectory -DCMAKE_BUILD_TYPE=Release -DSTEPWELL_WARNINGS_AS_ERRORS=ON ${launcher:+-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher} -DSTEPWELL_SOURCE_DIR="$PWD"
