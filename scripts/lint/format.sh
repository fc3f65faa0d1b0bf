#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# Fails if clang-format-19 would change a file; --fix changes them.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "${1:-}" = --fix ]; then mode=(-i); else mode=(--dry-run -Werror); fi
git ls-files -z -co --exclude-standard '*.h' '*.cc' | xargs -0 -n 8 -P "$(nproc)" clang-format-19 "${mode[@]}"
