# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/python, shortened, and the references of bench/python_torch.py against what they measure."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

ROOT = pathlib.Path(__file__).parents[2]


def run(program, *arguments, folder):
    done = subprocess.run([sys.executable, str(ROOT / program), *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_train_mamba(tmp_path):
    assert "read number by number" in run("examples/python/train_mamba.py", "--steps", "12", folder=tmp_path)


def test_gdn2_torch(tmp_path):
    lines = run("examples/python/gdn2_torch.py", "--times", "5", "70", folder=tmp_path).splitlines()
    differences = [float(line.split()[-1]) for line in lines if "gdn2" in line]
    assert len(differences) == 4 and max(differences) < 1e-4


def test_compare_mixers(tmp_path):
    pytest.importorskip("matplotlib")
    run("examples/python/compare_mixers.py", "--steps", "3", folder=tmp_path)
    assert (tmp_path / "mixers.svg").stat().st_size > 1000


def test_references_of_the_bench():
    spec = importlib.util.spec_from_file_location("python_torch", ROOT / "bench/python_torch.py")
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    for row in bench.ROWS:
        assert bench.largest_difference(row, tokens=70) < 1e-4, row.name
