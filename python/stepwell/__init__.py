# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Fixed-state sequence models on any CPU: sequence and step agree to the last bit.

stepwell.ops      numerical ops: gated delta rule, SSD, selective scan, mLSTM, sLSTM, …, with states and gradients
stepwell.layers   whole layers under their published parameter names
stepwell.memory   recurrent memories, trained one step at a time from a teacher's
stepwell.tasks    sequences to learn from, with baselines
stepwell.verify   the promises measured, for the built-in layers and for your own functions
"""

import os

from . import _core, layers, memory, ops, tasks, verify
from ._calls import vjp
from ._core import Error

__all__ = ["Error", "get_num_threads", "info", "layers", "memory", "ops", "set_num_threads", "tasks", "verify", "vjp"]


def set_num_threads(threads: int) -> None:
    """Threads that a call computes on from now on, for all Python threads; 0: one per processor (the default).

    Results have the same bits for any number.
    """
    _core.set_num_threads(threads)


def get_num_threads() -> int:
    """Threads that a call computes on."""
    return _core.get_num_threads()


def info() -> dict:
    """Version, instruction set in use and those offered, processors, threads, compiler, executor."""
    return _core.info()


__version__ = info()["version"]

# A child of os.fork() has none of its parent's worker threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_core.after_fork)
