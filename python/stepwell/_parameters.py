# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""What everything that holds parameters has in common."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from . import _arrays
from ._arrays import Array


def is_wide(dtype):
    """Whether a dtype is float64 rather than float32; ValueError for any other."""
    name = np.dtype(dtype).name
    if name not in ("float32", "float64"):
        raise ValueError(f"dtype {name}, expected float32 or float64")
    return name == "float64"


def contiguous(value, name):
    return np.ascontiguousarray(_arrays.float_array(value, name))


class Parameters:
    """Around an object of the extension, `_core`, with parameters of one dtype."""

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float64 if self._core.wide else np.float32)

    @property
    def config(self) -> dict:
        """Every option, spelled out."""
        return self._core.config

    def named_parameters(self) -> dict[str, np.ndarray]:
        """Copies of all parameters by name; those of layers are the published ones."""
        return self._core.named_parameters()

    def set_named_parameters(self, parameters: Mapping[str, Array]) -> None:
        """Sets all parameters from a mapping of names to arrays, converted to the dtype of the parameters. Lists all
        faults at once and changes nothing unless all is well."""
        self._core.set_named_parameters({name: contiguous(value, name) for name, value in parameters.items()})
