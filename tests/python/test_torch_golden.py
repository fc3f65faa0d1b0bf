# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The golden cases through stepwell.torch: values by its functions and modules, gradients by autograd."""

import functools
import pathlib

import pytest

pytest.importorskip("torch")

import case_runners
import torch_calls

from stepwell import verify

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


@pytest.fixture(autouse=True)
def through_torch(monkeypatch):
    monkeypatch.setattr(case_runners, "stepwell", torch_calls.over_torch)


def failures(folder, runners):
    report = verify.cases(GOLDEN / folder, runners, out=None)
    ran = [row for row in report.rows if row["outcome"] != "NOT RUN"]
    assert ran and all(row["compared"] for row in ran)
    return "\n".join(f"{row['subject']}: {row['reason']}" for row in report.failures())


@pytest.mark.parametrize("folder", ["gated-delta", "mamba", "xlstm"])
def test_golden_cases(folder):
    assert not failures(folder, case_runners.RUNNERS)


@pytest.mark.parametrize("folder", ["gated-delta", "mamba", "xlstm"])
def test_golden_cases_in_the_fastest_form(folder):
    runners = dict(case_runners.RUNNERS, layer=functools.partial(case_runners.layer, mode="fast"))
    for kind in ("gated_delta", "ssd", "mlstm"):
        runners[kind] = functools.partial(case_runners.RUNNERS[kind], form="fast")
    assert not failures(folder, runners)
