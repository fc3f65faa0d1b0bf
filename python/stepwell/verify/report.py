# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The table that all checks print, and the promises for the built-in layers."""

from __future__ import annotations

from typing import Callable, Iterable

from .. import _core

# Largest |Δ| over the largest expected value that two forms of one recurrence may differ by (docs/numerics.md).
RELATIVE = {"float32": 2e-5, "float64": 1e-11}


class Report:
    """What was measured: rows of subject, promise, outcome ("PASS", "FAIL", "NOT RUN"), figure, reason, compared."""

    def __init__(self, out=print):
        self.rows = []
        self._out = out

    def start(self):
        if self._out:
            self._out(_core.verify_header())

    def add(self, row):
        self.rows.append(row)
        if self._out:
            self._out(line(row))

    def finish(self):
        if self._out:
            self._out(self.summary())
        return self

    def count(self, outcome: str) -> int:
        return sum(row["outcome"] == outcome for row in self.rows)

    @property
    def passed(self) -> bool:
        """Something ran, and nothing failed. NOT RUN is not PASS."""
        return self.count("FAIL") == 0 and self.count("PASS") > 0

    def failures(self) -> list[dict]:
        return [row for row in self.rows if row["outcome"] == "FAIL"]

    def summary(self) -> str:
        return f"{self.count('PASS')} passed, {self.count('FAIL')} failed, {self.count('NOT RUN')} not run"

    def __str__(self):
        return "\n".join([_core.verify_header(), *map(line, self.rows), self.summary()])


def line(row):
    """One aligned line of the table."""
    return _core.verify_line(row["subject"], row["promise"], row["outcome"], row["figure"], row["reason"],
                             row["compared"])


class Tally:
    """What the measurements of one promise add up to."""

    def __init__(self, subject, promise):
        self.subject = subject
        self.promise = promise
        self.compared = 0
        self.failed = False
        self.worst = 0.0
        self.figure = ""
        self.reason = ""

    def fail(self, why):
        """Something is wrong that no figure says; the first such thing is kept."""
        self.failed = True
        self.reason = self.reason or why

    def bounded(self, difference, bound, scale, count, what):
        """`difference` (of values up to `scale`) must be at most `bound`."""
        self.compared += count
        share = difference / bound if bound > 0 else (0.0 if difference == 0 else float("inf"))
        self.failed = self.failed or not share <= 1
        if not self.figure or not share <= self.worst:
            self.worst = share
            self.figure = f"{difference:.2g} of {scale:.2g}, bound {bound:.2g}, in {what}"

    def row(self, not_run="nothing to compare"):
        outcome = "FAIL" if self.failed else "PASS" if self.compared else "NOT RUN"
        reason = not_run if outcome == "NOT RUN" else self.reason
        return dict(subject=self.subject, promise=self.promise, outcome=outcome, figure=self.figure, reason=reason,
                    compared=self.compared)


def layers(layer: str | None = None, *, cases: Iterable = (), out: Callable | None = print) -> Report:
    """The promises for every built-in op and layer, or for the one named; then the case files in the folders `cases`.

    The command `stepwell verify` runs the same; heap allocations of a step (X6) can be counted there only, and are NOT
    RUN here. Takes some seconds for all of them. → Report.
    """
    report = Report(out)
    report.start()
    _core.verify(layer or "", [str(folder) for folder in cases], report.add)
    return report.finish()
