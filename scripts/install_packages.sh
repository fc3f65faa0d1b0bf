#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian 12 packages of the named groups that are missing; says and does nothing when none is.
#   scripts/install_packages.sh build|test|lint|bench…
set -euo pipefail

declare -A groups=(
  [build]='g++ cmake ninja-build libhwy-dev libtbb-dev libfmt-dev libtomlplusplus-dev libcli11-dev ccache'
  [test]='libgtest-dev librapidcheck-dev librandom123-dev b3sum pkg-config'
  [lint]='git clang-format-19 clang-tidy-19 clang-19 libclang-rt-19-dev llvm-19'
  [python]='python3-dev python3-venv python3-pip python3-numpy python3-pytest python3-torch python3-matplotlib binutils qemu-user'
  [bench]='libopenblas0-pthread libblis4-openmp libdnnl2'
)

missing=()
for group in "$@"; do
  if [ -z "${groups[$group]:-}" ]; then
    echo "install_packages.sh: no group \"$group\"; groups: ${!groups[*]}" >&2
    exit 2
  fi
  for package in ${groups[$group]}; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null; then
  as_root=(sudo)
else
  echo "These packages are missing, and without sudo only root can install them: apt-get install ${missing[*]}" >&2
  exit 1
fi

echo "Installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >>"$log" 2>&1; }
if ! { apt update && apt install --no-install-recommends -y "${missing[@]}"; }; then
  cat "$log" >&2
  echo "apt-get failed; Stepwell is built on Debian 12 (bookworm) or newer" >&2
  exit 1
fi
