# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The golden cases through the Python ops and layers, gradients included."""

import functools
import pathlib

import case_runners
import pytest

from stepwell import verify

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
# Whole models are not part of the package.
MODELS = ("lm", "block_stack")


def failures(folder, runners):
    report = verify.cases(GOLDEN / folder, runners, out=None)
    ran = [row for row in report.rows if row["outcome"] != "NOT RUN"]
    assert ran and all(row["compared"] for row in ran)
    for row in report.rows:
        assert row["outcome"] != "NOT RUN" or row["reason"].split()[-1] in MODELS, row
    return "\n".join(f"{row['subject']}: {row['figure']} {row['reason']}" for row in report.failures())


@pytest.mark.parametrize("folder", ["gated-delta", "mamba", "xlstm"])
def test_golden_cases(folder):
    assert not failures(folder, case_runners.RUNNERS)


@pytest.mark.parametrize("chunk", [1, 5, 16, 64])
@pytest.mark.parametrize("folder", ["gated-delta", "mamba", "xlstm"])
def test_golden_cases_in_chunks(folder, chunk):
    runners = dict(case_runners.RUNNERS, layer=functools.partial(case_runners.layer, mode="fast"))
    for kind in ("gated_delta", "ssd", "mlstm"):
        runners[kind] = functools.partial(case_runners.RUNNERS[kind], form="chunked", chunk=chunk)
    assert not failures(folder, runners)
