#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
# The Python package: builds the wheel, uses it in a clean virtual environment (numpy from PyPI), runs the tests and the
# Python blocks of README and docs beside Debian's packages, checks that the extension asks no more of a processor than
# x86-64-v2, and runs part of the tests on such a one (emulated). Writes to build/python only.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/build/python
python=/usr/bin/python3
rm -rf "$out"
mkdir -p "$out"

echo '[1/6] Packages'
scripts/install_packages.sh build python
echo '[2/6] Wheel'
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER:-ccache}
fi
# The compiler and flags of the release preset, so that its objects are found in the cache; symbols for step 5.
export CC=${CC:-cc} CXX=${CXX:-c++}
"$python" -m pip wheel . --quiet --no-deps --wheel-dir "$out" \
  --config-settings=cmake.define.STEPWELL_WARNINGS_AS_ERRORS=ON --config-settings=install.strip=false
ls -l "$out"/stepwell-*.whl
echo '[3/6] Clean virtual environment'
"$python" -m venv "$out/clean"
"$out/clean/bin/pip" install --quiet "$out"/stepwell-*.whl
(cd "$out" && clean/bin/python -c '
import numpy as np
import stepwell
layer = stepwell.layers.make("gated_delta_net2", 64, num_heads=2, head_dim=16)
x = np.random.default_rng(0).standard_normal((2, 50, 64)).astype(np.float32)
y, _ = layer(x)
state = None
for t in range(50):
    z, state = layer.step(x[:, t], state)
    assert (z == y[:, t]).all()
print(stepwell.info())')
"$out/clean/bin/python" bench/python_calls.py
echo '[4/6] Tests'
"$python" -m venv --system-site-packages "$out/venv"
"$out/venv/bin/pip" install --quiet --no-deps "$out"/stepwell-*.whl
"$out/venv/bin/python" -m pytest -q -p no:cacheprovider tests/python
echo '[5/6] Instructions'
extension=$(echo "$out"/venv/lib/python3*/site-packages/stepwell/_core*.so)
scripts/lint/baseline.sh "$extension"
echo '[6/6] Tests on an x86-64-v2 processor'
emulated() { qemu-x86_64 -cpu Nehalem "$(readlink -f "$out/venv/bin/python")" "$@"; }
export PYTHONPATH=${extension%/stepwell/*}
emulated -W ignore -c 'import stepwell; info = stepwell.info(); print(info); assert "avx2" not in info["offered here"]'
emulated -W ignore -m pytest -q -p no:cacheprovider tests/python/test_golden.py tests/python/test_ops.py -k 'golden_cases[ or steps or extreme'
