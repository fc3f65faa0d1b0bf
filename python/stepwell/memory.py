# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Recurrent memories that are trained one step at a time, from the memories of a teacher that sees whole sequences.

>>> teacher = stepwell.memory.SetEncoderTeacher(3, memory_width=16, window=16, bound="tanh")
>>> cell = stepwell.memory.make_updater("gated", 3, 3)
>>> report = stepwell.memory.distill({"task": {"name": "needle", "length": 96}, …}, "runs/needle")

docs/memory-training.md has the idea and what it is worth (after arXiv:2606.06479; teacher, cells and driver are this
library's own); stepwell.tasks the tasks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _arrays, _core
from ._arrays import Array
from ._parameters import Parameters, contiguous, is_wide

__all__ = ["MemoryUpdater", "SetEncoderTeacher", "distill", "load", "make_updater"]


class _Trained(Parameters):
    """Parameters and an optimiser. Calls may come from several threads at once; training steps take turns."""

    def __init__(self, core):
        self._core = core

    @property
    def token_width(self) -> int:
        return self._core.token_width

    @property
    def output_width(self) -> int:
        """Extent of what is predicted."""
        return self._core.output_width

    def optimizer_state(self) -> dict[str, np.ndarray]:
        """Copies of what the optimiser (Adam) needs to go on with the same bits; nothing before its first step."""
        return self._core.optimizer_state()

    def set_optimizer_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Takes an optimizer_state() back. Changes nothing unless all is well; an empty one starts anew."""
        self._core.set_optimizer_state({name: np.ascontiguousarray(value) for name, value in state.items()})

    def _own(self, value, name):
        array = contiguous(value, name)
        if array.dtype != self.dtype:
            raise TypeError(f"{name} has dtype {array.dtype}, expected {self.dtype}, that of the parameters")
        return array


class SetEncoderTeacher(_Trained):
    """A teacher of memories: it sees a whole window of tokens at once and turns it into a memory that predicts what
    comes next.

        E = X embedᵀ;   Z = E + softmax(Q Kᵀ / √(embed_width / heads)) V
        M = bound(memory · mean Z);   prediction = decoder M

    token_width   extent of a token
    output_width  of what is predicted; 0: token_width
    seed          of the first values: the same on every machine
    options       embed_width (24), memory_width (16), window (16; most tokens of a window), heads (1; a divisor of
                  embed_width), recency (False; timestamps by age, and a mean that halves every half_life tokens),
                  half_life (0: window / 4), bound ("none", "tanh", which a gated cell needs, or "rms")

    Bits of a memory depend on its window alone. Parameters: embed, attn.q, attn.k, attn.v, memory, decoder.
    """

    def __init__(
        self, token_width: int, output_width: int = 0, *, seed: int = 0, dtype: Any = "float32", **options: Any
    ):
        super().__init__(
            _core.make_teacher(int(token_width), int(output_width), options, int(seed), is_wide(dtype)))

    @property
    def memory_width(self) -> int:
        """Extent of a memory."""
        return self.config["memory_width"]

    @property
    def window(self) -> int:
        """Most tokens that a memory is made of."""
        return self.config["window"]

    def encode(self, windows: Array) -> np.ndarray:
        """Windows of w tokens, 1 ≤ w ≤ window: [B, w, token_width] → memories [B, memory_width]."""
        return self._core.encode(self._own(windows, "windows"))

    def encode_trajectory(self, x: Array) -> np.ndarray:
        """The memory after every token of x [B, T, token_width], of the last `window` tokens or as many as there are →
        [B, T, memory_width]."""
        return self._core.encode_trajectory(self._own(x, "x"))

    def predict(self, memory: Array) -> np.ndarray:
        """memory [..., memory_width] → what it predicts [..., output_width]."""
        return self._core.predict(self._own(memory, "memory"))

    def train_step(self, windows: Array, next: Array, lr: float) -> dict:
        """One step of Adam on mean (predict(encode(windows)) − next)²: windows [B, w, token_width], next
        [B, output_width].

        → readout_loss (that mean, before the step), gradient_norm (before clipping at 1), clipped, skipped (a loss or a
        gradient was not finite: parameters and moments keep their bits); memory_loss is 0.
        """
        return self._core.train_step(self._own(windows, "windows"), self._own(next, "next"), float(lr))

    def __repr__(self):
        return f"stepwell.memory.SetEncoderTeacher({self.token_width}, {self.output_width}, dtype={str(self.dtype)!r})"


class MemoryUpdater(_Trained):
    """A recurrent memory: a vector, an update by a token, and a linear readout w_read that predicts from it. Made by
    make_updater()."""

    @property
    def type(self) -> str:
        """Its name: "gated", "cloned", or a mixer's."""
        return self._core.type

    @property
    def memory_width(self) -> int:
        """Extent of a memory."""
        return self._core.memory_width

    @property
    def context(self) -> int:
        """How many tokens an update reads, the newest last: 1, or the width of a mixer's short convolution. Zeros stand
        for those before a sequence's first."""
        return self._core.context

    @property
    def clamp(self) -> float:
        """step() keeps every entry within ±clamp; 0: it does not clamp."""
        return self._core.clamp

    def initial_memory(self, batch: int) -> np.ndarray:
        """What a sequence starts from, [batch, memory_width]: zeros, unless the cell knows better."""
        return self._core.initial_memory(int(batch))

    def step(self, memory: Array, tokens: Array) -> np.ndarray:
        """The memory after a token: memory [B, memory_width], tokens [B, context, token_width] → [B, memory_width]; or
        one memory [memory_width] and its tokens [context, token_width]."""
        return self._core.step(self._own(memory, "memory"), self._own(tokens, "tokens"))

    def predict(self, memory: Array) -> np.ndarray:
        """memory [..., memory_width] → what it predicts [..., output_width]."""
        return self._core.predict(self._own(memory, "memory"))

    def train_step(self, memory: Array, tokens: Array, target: Array, next: Array, lr: float) -> dict:
        """One step of Adam on mean (M' − target)² + mean (predict(M') − next)² over all parameters, where M' is the
        update of memory [B, memory_width] by tokens [B, context, token_width]; target [B, memory_width], next
        [B, output_width].

        → memory_loss and readout_loss (the two means, before the step), gradient_norm (before clipping at 1), clipped,
        skipped (a loss or a gradient was not finite: parameters and moments keep their bits).
        """
        return self._core.train_step(self._own(memory, "memory"), self._own(tokens, "tokens"),
                                     self._own(target, "target"), self._own(next, "next"), float(lr))

    def train_step_memory(self, memory: Array, tokens: Array, target: Array, lr: float) -> dict:
        """One step on mean (M' − target)² alone, with an optimiser of its own: the readout and train_step's optimiser
        keep their bits. → a report as train_step's; readout_loss is 0."""
        return self._core.train_step(self._own(memory, "memory"), self._own(tokens, "tokens"),
                                     self._own(target, "target"), None, float(lr))

    def contraction_estimate(self, memory: Array, tokens: Array) -> float:
        """The largest factor by which an update stretches a small change of the memory, over the samples given (memory
        [S, memory_width], tokens [S, context, token_width]): the largest singular value of dM'/dM, by power
        iteration."""
        return self._core.contraction_estimate(self._own(memory, "memory"), self._own(tokens, "tokens"))

    def __repr__(self):
        return (f"stepwell.memory.make_updater({self.type!r}, {self.token_width}, {self.output_width}, "
                f"{self.memory_width}, dtype={str(self.dtype)!r})")


def make_updater(
    type: str, token_width: int, output_width: int, memory_width: int = 0, *, seed: int = 0, dtype: Any = "float32",
    **options: Any,
) -> MemoryUpdater:
    """A cell by name, its first values drawn from `seed`.

    "gated"   z = sigmoid(w_z [M; x]), c = tanh(w_c [M; x]), M' = (1 − z) M + z c: |M'| ≤ max(|M|, 1), exactly.
              Options: bias (False).
    "cloned"  M' = 0.9 M + w_mem gelu(w_in [M; x]), clamped at 4 by step(). Options: hidden (4 · memory_width).
    a mixer   of stepwell.layers.names(): its state is the memory. Options: width (16), clamp (0: none), mixer (a dict
              of the layer's own).

    memory_width 0: 16, or for a mixer what its options make of its state, which is the only other value it takes.
    """
    return MemoryUpdater(_core.make_updater(
        type, int(token_width), int(output_width), int(memory_width), options, int(seed), is_wide(dtype)))


def distill(
    recipe: Mapping[str, Any] | str | os.PathLike | None, folder: str | os.PathLike, resume: bool = False
) -> dict:
    """Trains a teacher and a cell on a task as the recipe says, in a run folder of its own: what `stepwell distill`
    does, with the same bits.

    recipe  a mapping of the sections task, teacher, cell, train, imitation and evaluate, or the path of a TOML file
    folder  of the run; must not hold one, unless
    resume  is true: goes on with the run in the folder as it was started. recipe is then None.

    → the report (stepwell/memory/report.h has its fields). Ctrl-C finishes the step at hand and saves a checkpoint;
    what is resumed ends with the same bytes as what was never stopped.
    """
    if resume != (recipe is None):
        raise ValueError("resume=True goes on with a run as it was started: it takes None for a recipe"
                         if resume else "recipe is None, expected a mapping or the path of a TOML file")
    if recipe is not None:
        recipe = dict(recipe) if isinstance(recipe, Mapping) else os.fspath(recipe)
    return _core.distill(recipe, os.fspath(folder))


def load(folder: str | os.PathLike) -> tuple[MemoryUpdater, SetEncoderTeacher | None]:
    """Cell and teacher of the newest checkpoint of the distillation in `folder`, with their optimisers' states; None
    for a teacher in mode bptt. No other process may be training the run."""
    cell, core = _core.load_distillation(os.fspath(folder))
    teacher = None
    if core is not None:
        teacher = SetEncoderTeacher.__new__(SetEncoderTeacher)
        _Trained.__init__(teacher, core)
    return MemoryUpdater(cell), teacher
