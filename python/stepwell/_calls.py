# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Calls that remember what their gradients need."""

from __future__ import annotations

import contextvars
from typing import Any, Callable, Iterable

from . import _arrays, _core

_recorder = contextvars.ContextVar("stepwell.recorder", default=None)


class Recorder:
    """Set while vjp() runs its function: which gradients are wanted, and what the call left."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.backward = None

    def take(self, backward):
        if self.backward is not None:
            raise TypeError("vjp of a function that calls several ops, expected one op or layer")
        self.backward = backward


def recorder():
    return _recorder.get()


def wanted_names(recorder, names):
    """Of `names`, those whose gradients are wanted."""
    if recorder is None:
        return set()
    if recorder.wanted is None:
        return set(names)
    unknown = set(recorder.wanted) - set(names)
    if unknown:
        raise ValueError(f"wrt names {sorted(unknown)}, expected arrays of the call: {sorted(names)}")
    return set(recorder.wanted)


def call_op(op, required, results, optional=None, options=None, cu_seqlens=None):
    """Runs an op of the library on these arrays, optional ones only where they are not None. → its results in order, a
    single one by itself."""
    arrays = _arrays.float_arrays(required, optional)
    options = {name: value for name, value in (options or {}).items() if value is not None}
    record = recorder()
    wanted = wanted_names(record, arrays)
    call = _core.call(op, arrays, options, _arrays.integer_array(cu_seqlens, "cu_seqlens"), wanted)
    values = call.results()
    if record is not None:
        dtype = next(iter(arrays.values())).dtype

        def backward(*gradients, **named):
            return call.backward(_cotangents(gradients, named, results, dtype))

        record.take(backward)
    return values[0] if len(values) == 1 else tuple(values)


def _cotangents(gradients, named, results, dtype):
    if len(gradients) > len(results):
        raise TypeError(f"{len(gradients)} gradients for {len(results)} results: {', '.join(results)}")
    given = dict(zip(results, gradients))
    for name, value in named.items():
        if name not in results or name in given:
            raise TypeError(f"a gradient of {name}, expected one each of {', '.join(results)}")
        given[name] = value
    arrays = {name: _arrays.float_array(value, f"the gradient of {name}")
              for name, value in given.items() if value is not None}
    for name, array in arrays.items():
        if array.dtype != dtype:
            raise TypeError(f"the gradient of {name} has dtype {array.dtype}, expected {dtype}")
    return arrays


def vjp(
    function: Callable, /, *args: Any, wrt: Iterable[str] | None = None, **kwargs: Any
) -> tuple[Any, Callable[..., dict]]:
    """Calls an op or a layer and keeps what its gradients need.

    Returns (results, backward): the results of function(*args, **kwargs), the same bits, and a function that takes the
    gradients arriving at them, in order or by name, None for zero, and returns a dict of gradients by argument's name:
    of every array given, states included, or of those that `wrt` names. backward may be called any number of times;
    memory is held until it is dropped. A gradient is None where nothing depends on the argument.

    >>> y, backward = stepwell.vjp(stepwell.ops.softmax, x)
    >>> backward(grad_y)["x"]
    """
    record = Recorder(wrt)
    token = _recorder.set(record)
    try:
        results = function(*args, **kwargs)
    finally:
        _recorder.reset(token)
    if record.backward is None:
        raise TypeError(f"vjp of {function!r}, expected an op of stepwell.ops or a layer of stepwell.layers")
    return results, record.backward
