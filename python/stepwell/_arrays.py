# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""What counts as an array, and how it reaches the library: native, aligned, float32 or float64, without a copy if its
layout allows."""

from __future__ import annotations

import array as _array
from typing import Any, Protocol, Sequence, Union

import numpy as np

from . import _core


class DLPack(Protocol):
    """An array of any library that exports its memory."""

    def __dlpack__(self, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> Any: ...


Array = Union[np.ndarray, DLPack, memoryview, _array.array]
Borders = Union[Sequence[int], Array]

_CPU = 1  # DLPack's kDLCPU
_RULE = "expected an array on the CPU (NumPy, DLPack or the buffer protocol)"


def _type_name(value):
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _from_dlpack(value, name):
    device = value.__dlpack_device__()
    if int(device[0]) != _CPU:
        raise TypeError(f"{name} is a {_type_name(value)} on device {tuple(device)}, {_RULE}")
    if getattr(value, "requires_grad", False):
        raise ValueError(f"{name} requires a gradient that NumPy's arrays do not carry, expected a detached tensor; "
                         "stepwell.torch is differentiable")
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError) as error:
        # NumPy knows no bfloat16, and old ones nothing that is read-only.
        try:
            return _core.copy_of(value, name)
        except _core.Error:
            raise
        except Exception:
            raise ValueError(f"{name} is a {_type_name(value)} that cannot be shared: {error}") from error


def _numpy_array(value, name):
    if isinstance(value, np.ndarray):
        if hasattr(value, "mask"):
            raise TypeError(f"{name} is a masked array, {_RULE} without a mask")
        return value
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _from_dlpack(value, name)
    if isinstance(value, (list, tuple, int, float, complex, str, bytes)) or value is None:
        raise TypeError(f"{name} is a {type(value).__name__}, {_RULE}")
    try:
        return np.asarray(memoryview(value))
    except (TypeError, ValueError, BufferError):
        raise TypeError(f"{name} is a {_type_name(value)}, {_RULE}") from None


def _rows_without_gaps(array):
    """Whether kernels may read the array as it lies: the last dimension contiguous, the others going forwards."""
    if array.ndim < 3 or array.strides[-1] != array.itemsize:
        return False
    return all(n == 1 or (s > 0 and s % array.itemsize == 0) for n, s in zip(array.shape, array.strides))


def float_array(value, name):
    """`value` as float32 or float64; bfloat16 and float16 are widened to float32, exactly."""
    array = value if type(value) is np.ndarray else _numpy_array(value, name)
    dtype = array.dtype
    if dtype.char not in "fd":
        if dtype.name not in ("float16", "bfloat16"):
            raise TypeError(f"{name} has dtype {dtype}, expected float32, float64, bfloat16 or float16")
        array = array.astype(np.float32)
    elif not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="))
    flags = array.flags
    if flags.aligned and (flags.c_contiguous or _rows_without_gaps(array)):
        return array if type(array) is np.ndarray else array.view(np.ndarray)
    return _core.row_major(array) if flags.aligned else np.array(array, order="C", copy=True, subok=False)


def float_arrays(required, optional=None):
    """float_array for the values of two dicts, leaving out optional ones that are None; all must come out with one
    dtype."""
    given = {**required, **{name: value for name, value in (optional or {}).items() if value is not None}}
    arrays = {name: float_array(value, name) for name, value in given.items()}
    first = None
    for name, array in arrays.items():
        first = first or name
        if array.dtype != arrays[first].dtype:
            raise TypeError(
                f"{name} has dtype {array.dtype} and {first} {arrays[first].dtype}, "
                "expected one dtype for all arrays of a call (bfloat16 and float16 count as float32)"
            )
    return arrays


def integer_array(value, name):
    """Borders of packed sequences: one dimension of integers, as int64. None stays None."""
    if value is None:
        return None
    array = np.asarray(value) if isinstance(value, (list, tuple)) else _numpy_array(value, name)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"{name} has dtype {array.dtype} and shape {array.shape}, expected one dimension of integers")
    return np.ascontiguousarray(array, dtype=np.int64)


def mask_array(value, name):
    """A mask of real tokens as bool. None stays None."""
    if value is None:
        return None
    array = _numpy_array(value, name)
    if array.dtype.kind not in "biu":
        raise TypeError(f"{name} has dtype {array.dtype}, expected bool or integers 0 and 1")
    if array.dtype.kind != "b" and not np.isin(array, (0, 1)).all():
        raise ValueError(f"{name} holds integers other than 0 and 1")
    return np.ascontiguousarray(array, dtype=np.bool_)
