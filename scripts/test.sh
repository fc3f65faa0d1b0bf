#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# Installs the packages that are missing, builds Stepwell in build/release and runs its tests.
set -euo pipefail
cd "$(dirname "$0")/.."

echo '[1/3] Packages'
scripts/install_packages.sh build test
echo '[2/3] Build'
scripts/build.sh release
echo '[3/3] Tests'
ctest --preset release -j "$(nproc)"
