# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks by name: sequences of vectors without end, and what is asked of a predictor after each token.

>>> task = stepwell.tasks.make("oscillators")
>>> batch = task.sample(seed=1, purpose="train", first=0, count=8, length=64)
>>> task.baselines(batch)                  # what predictors without training reach
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _arrays, _core
from ._arrays import Array

__all__ = ["Task", "make", "names"]


class Task:
    """A source of sequences, the same on every machine. Made by make()."""

    def __init__(self, name: str, **options: Any):
        self._core = _core.make_task(name, options)
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def input_width(self) -> int:
        """Extent of a token."""
        return self._core.input_width

    @property
    def output_width(self) -> int:
        """Extent of what is predicted, in the units of a token's first entries."""
        return self._core.output_width

    @property
    def answer(self) -> str:
        """ "value": judged by mean square error; "sign": targets are ±1, judged by the share of right signs."""
        return "sign" if self._core.signs else "value"

    @property
    def config(self) -> dict:
        """Every option, spelled out, as make() takes it."""
        return self._core.config

    def sample(self, seed: int, purpose: str, first: int, count: int, length: int) -> dict[str, np.ndarray]:
        """Sequences number first … first + count − 1 of the set called `purpose` ("train", "held-out"), each decided by
        seed, purpose, number and length alone.

        → x       float32 [count, length, input_width]   the tokens
          target  float32 [count, length, output_width]  what to predict after each; 0 where nothing is asked
          asked   bool [count, length]                   whether anything is asked there
          event   int64 [count]                          the token that decides the answer, −1 where there is none
        """
        return self._core.sample(int(seed), purpose, int(first), int(count), int(length))

    def baselines(self, batch: Mapping[str, Array], start: int = 0) -> dict[str, float]:
        """Figures of predictors without training over the asked tokens t ≥ start of a batch as sample() gives it: mean
        square errors of "persistence", "best_exponential_average" and "bayes_filter" where the task has them, or the
        share of right signs by "chance"."""
        return self._core.baselines(_batch(batch), int(start))

    def score(self, batch: Mapping[str, Array], prediction: Array, start: int = 0) -> float:
        """The figure of a prediction [count, length, output_width] over the asked tokens t ≥ start: mean square error,
        or the share of right signs."""
        return self._core.score(_batch(batch), _contiguous(prediction, "prediction"), int(start))

    def __repr__(self):
        return f"stepwell.tasks.make({self._name!r})"


def _contiguous(value, name):
    return np.ascontiguousarray(_arrays.float_array(value, name))


def _batch(batch):
    missing = {"x", "target", "asked", "event"} - set(batch)
    if missing:
        raise ValueError(f"the batch has no {', '.join(sorted(missing))}, expected one as sample() gives it")
    return {
        "x": _contiguous(batch["x"], "x"), "target": _contiguous(batch["target"], "target"),
        "asked": _arrays.mask_array(batch["asked"], "asked"), "event": _arrays.integer_array(batch["event"], "event"),
    }


def names() -> list[str]:
    """Names of all tasks."""
    return [name for name, _ in _core.sequence_tasks()]


def make(name: str, **options: Any) -> Task:
    """A task by name; unknown options throw."""
    return Task(name, **options)
