# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The copy behind arrays that kernels cannot read as they lie: any strides, sizes around those of its blocks."""

import itertools

import numpy as np
import pytest

from stepwell import _core

SHAPES = [(), (5,), (17, 33), (16, 16), (3, 15, 31), (2, 48, 1), (1, 1, 20), (0, 4), (2, 3, 4, 5), (32, 0, 7)]


def views(array):
    yield from (array.transpose(order) for order in itertools.permutations(range(array.ndim)))
    if array.ndim:
        yield array[..., ::-1]
        yield array[::2]
        yield np.broadcast_to(array[:1], array.shape)
        yield np.broadcast_to(array[..., :1], array.shape).swapaxes(0, -1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_row_major(shape, dtype, rng):
    array = rng.standard_normal(shape).astype(dtype)
    for view in views(array):
        copy = _core.row_major(view)
        assert copy.flags.c_contiguous and not np.shares_memory(copy, array)
        assert copy.shape == view.shape and copy.tobytes() == view.tobytes()
