# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The functions of stepwell.ops on tensors: the same names, arguments, shapes and bits, differentiable by autograd with
respect to every tensor, states included. help(stepwell.torch.ops.gated_delta) says what each does.

Strides, gradients that arrive and requires_grad are free. cu_seqlens is a tensor or a list of integers. Under
torch.compile and torch.export (torch 2.4 and later) a call is one node, torch.ops.stepwell.<op>.
"""

from types import FunctionType
from typing import Any  # noqa: F401  in the hints below, as is Borders

import torch

from .. import ops as _ops
from .._arrays import Borders  # noqa: F401
from .._calls import call_op as _call_on_arrays
from .._calls import vjp
from ._function import check_tensor, differentiable
from ._table import OPS

_NOT_FOR_TENSORS = {"verify_gated_delta", "vjp"}


def run_op(op, options, borders, arrays, wanted):
    """An op on arrays as differentiable() takes it."""
    row = OPS[op]
    call = dict(options=options, cu_seqlens=borders)
    if not wanted:
        values, adjoint = _call_on_arrays(op, arrays, row.results, **call), None
    else:
        values, backward = vjp(_call_on_arrays, op, arrays, row.results, wrt=wanted, **call)

        def adjoint(cotangents):
            return backward(**cotangents)

    return (values if len(row.results) > 1 else (values,)), adjoint


def borders_of(cu_seqlens):
    """Borders of packed sequences as an array or list; None stays None."""
    if not isinstance(cu_seqlens, torch.Tensor):
        return cu_seqlens
    if cu_seqlens.device.type != "cpu":
        raise ValueError(f"cu_seqlens is on device {cu_seqlens.device}, expected cpu: Stepwell computes on CPUs")
    return cu_seqlens.detach().numpy()


def call_op(op, required, results, optional=None, options=None, cu_seqlens=None):
    """What the functions of stepwell.ops call, for tensors."""
    tensors = {**required, **{name: tensor for name, tensor in (optional or {}).items() if tensor is not None}}
    options = options or {}
    if _library is not None and torch.compiler.is_compiling():
        for name, tensor in tensors.items():
            check_tensor(tensor, name)
        values = _library.call(op, tensors, options, cu_seqlens)
    else:
        borders = borders_of(cu_seqlens)
        values = differentiable(lambda given, wanted: run_op(op, options, borders, given, wanted), tensors, results)
    return values[0] if len(values) == 1 else values


def _on_tensors(function):
    """A function of stepwell.ops as a function of this module: its calls go to the call_op above."""
    twin = FunctionType(function.__code__, globals(), function.__name__, function.__defaults__, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__annotations__ = {name: hint.replace("np.ndarray", "torch.Tensor").replace("Array", "torch.Tensor")
                            for name, hint in function.__annotations__.items()}
    twin.__doc__ = function.__doc__
    twin.__module__ = __name__
    return twin


__all__ = [name for name in _ops.__all__ if name not in _NOT_FOR_TENSORS]
globals().update({name: _on_tensors(getattr(_ops, name)) for name in __all__})

_library = None
if hasattr(getattr(torch, "library", None), "custom_op"):  # torch 2.4
    from . import _library
