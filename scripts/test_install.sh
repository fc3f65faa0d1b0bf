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

cmake --build --preset release
cmake --install build/release --prefix "$prefix" >/dev/null

consume() {  # consume NAME ARGUMENT…: configures, builds and runs the consumer
  local name=$1
  shift
  cmake -S tests/install -B "$out/$name" -G Ninja -DCMAKE_BUILD_TYPE=Release "$@" >/dev/null
  cmake --build "$out/$name"
  ctest --test-dir "$out/$name" --output-on-failure
}
consume package -DCMAKE_PREFIX_PATH="$prefix"

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig:$(echo "$prefix"/lib/*/pkgconfig)
for library in infer stepwell; do
  module=${library/infer/stepwell-infer}
  # shellcheck disable=SC2046  # the flags are words
  c++ -std=c++20 tests/install/uses_$library.cc -o "$out/uses_$library" $(pkg-config --cflags --libs "$module")
  "$out/uses_$library"
done

consume subdirectory -DSTEPWELL_SOURCE_DIR="$PWD"
