# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Case files (docs/case-files.md) against any implementation."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Callable

import numpy as np

from .. import _core
from .arrays import to_numpy
from .report import Report, Tally


class Case:
    """One case in one dtype, as a runner sees it.

    name, kind   of the file
    config       a dict with every option of the run
    inputs       arrays by name, in the dtype under test (integers stay int64)
    parameters   arrays by published name, in the dtype under test
    cotangents   gradients arriving at the outputs, by output's name; empty: no gradients are asked for
    dtype        "float64" or "float32"
    """

    def __init__(self, file, dtype):
        self.name, self.kind, self.config, self.dtype = file.name, file.kind, file.config, dtype
        self._file = file
        tensors = {}
        for name, array in file.tensors().items():
            prefix, _, rest = name.partition(".")
            tensors.setdefault(prefix, {})[rest] = array
        self.inputs = self._in_dtype(tensors.get("in", {}))
        self.parameters = self._in_dtype(tensors.get("param", {}))
        self.cotangents = self._in_dtype(tensors.get("cot", {}))
        self.expected = tensors.get("out", {})
        self.expected_gradients = tensors.get("grad", {})

    def _in_dtype(self, arrays):
        return {name: array.astype(self.dtype) if array.dtype.kind == "f" else array for name, array in arrays.items()}

    def tolerance(self, name):
        """(relative, absolute) of a tensor: |Δ| ≤ relative · max|expected| + absolute."""
        return self._file.tolerance(name, self.dtype == "float64")


def cases(
    folder: str | os.PathLike, runners: Mapping[str, Callable], *, dtypes: Sequence[str] = ("float64", "float32"),
    out: Callable | None = print,
) -> Report:
    """Runs all case files below `folder` with {kind: runner}; kinds without a runner are NOT RUN.

    runner(case) → outputs, or (outputs, gradients): dicts of arrays by the names of the file. Gradients are named
    "in.X" or "param.X" (or plainly "X" for an input), those of Σ output · cotangent. Whatever the file expects must be
    there; gradients only if the file has cotangents. → Report, a row for each kind (and type of layer) and dtype.
    """
    paths = sorted(os.path.join(root, name) for root, _, names in os.walk(folder)
                   for name in names if name.endswith(".safetensors"))
    if not paths:
        raise FileNotFoundError(f"{folder} holds no .safetensors file")
    groups = {}
    for path in paths:
        file = _core.CaseFile(path)
        for dtype in dtypes:
            if not file.runs_in(dtype == "float64"):
                continue
            tally, names, missing = groups.setdefault((file.group, dtype), (Tally(f"cases {file.group}", ""), [], []))
            names.append(file.name)
            if file.kind not in runners:
                missing.append(file.kind)
                continue
            case = Case(file, dtype)
            try:
                _compare(case, runners[file.kind](case), tally)
            except Exception as error:
                tally.fail(f"{case.name}: {type(error).__name__}: {error}")
    report = Report(out)
    report.start()
    for (_, dtype), (tally, names, missing) in sorted(groups.items()):
        tally.promise = f"{len(names)} × {'f64' if dtype == 'float64' else 'f32'}"
        report.add(tally.row(f"there is no runner for kind {missing[0]}" if missing else "nothing to compare"))
    return report.finish()


def _compare(case, result, tally):
    outputs, gradients = result if isinstance(result, tuple) else (result, None)
    for name, expected in case.expected.items():
        if name not in outputs:
            tally.fail(f"{case.name}: there is no output {name}")
            continue
        _compare_one(case, to_numpy(outputs[name]), expected, f"out.{name}", tally)
    if not case.cotangents:
        return
    for name, expected in case.expected_gradients.items():
        gradient = (gradients or {}).get(name)
        if gradient is None and name.startswith("in."):
            gradient = (gradients or {}).get(name[3:])
        if gradient is None:
            tally.fail(f"{case.name}: there is no gradient {name}")
            continue
        _compare_one(case, to_numpy(gradient), expected, f"grad.{name}", tally)


def _compare_one(case, got, expected, name, tally):
    what = f"{case.name} {name}"
    if got.shape != expected.shape:
        tally.fail(f"{what}: shape {list(got.shape)}, expected {list(expected.shape)}")
        return
    if expected.size == 0:
        return
    if expected.dtype.kind != "f":
        tally.bounded(float((got != expected).sum()), 0.0, float(np.abs(expected).max()), expected.size, what)
        return
    relative, absolute = case.tolerance(name)
    scale = float(np.abs(expected).max())
    difference = float(np.abs(got.astype(np.float64) - expected).max())
    tally.bounded(difference, relative * scale + absolute, scale, expected.size, what)
