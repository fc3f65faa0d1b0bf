#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# Installs the packages that are missing, builds Stepwell in build/release and runs its tests, then has it verify its
# promises on this machine. Writes to build/ only.
set -euo pipefail
cd "$(dirname "$0")/.."

echo '[1/4] Packages'
scripts/install_packages.sh build test
echo '[2/4] Build'
scripts/build.sh release
echo '[3/4] Tests'
ctest --preset release -j "$(nproc)"
echo '[4/4] Promises, and golden cases'
build/release/cli/stepwell verify --cases tests/golden/mamba tests/golden/gated-delta tests/golden/xlstm
