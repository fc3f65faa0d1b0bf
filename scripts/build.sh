#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# Configures and builds a preset, through ccache where there is one: scripts/build.sh PRESET [TARGET…]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER:-ccache}
fi
cmake --preset "$preset"
cmake --build --preset "$preset" ${@:+--target "$@"}
