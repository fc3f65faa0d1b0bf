# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""One bridge between autograd and calls that know their own gradients."""

import torch
from torch.autograd.function import once_differentiable

from .. import _core

_TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def check_tensor(tensor, name):
    """Raises unless `tensor` is a dense tensor of floating-point numbers on the CPU."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} is a {type(tensor).__module__}.{type(tensor).__qualname__}, expected a torch.Tensor")
    if tensor.device.type != "cpu":
        raise ValueError(f"{name} is on device {tensor.device}, expected cpu: Stepwell computes on CPUs")
    if tensor.layout != torch.strided:
        raise ValueError(f"{name} has layout {tensor.layout}, expected torch.strided")
    if tensor.dtype not in _TYPES:
        raise TypeError(f"{name} has dtype {tensor.dtype}, expected float32, float64, bfloat16 or float16")


def widest(tensors):
    """What a call computes in: float64 if any of its tensors is, or else float32."""
    return torch.float64 if any(t.dtype == torch.float64 for t in tensors) else torch.float32


def array_of(tensor, dtype):
    """The tensor as a NumPy array of `dtype`: its own memory if it has that type already."""
    return tensor.detach().to(dtype).resolve_neg().numpy()


def tensors_of(arrays, first, wide):
    """Results of a call: the first in the type of its first argument, states as they were computed."""
    return tuple(torch.from_numpy(array).to(wide if i else first) for i, array in enumerate(arrays))


class _Call(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, names, results, *tensors):
        wide = widest(tensors)
        wanted = [name for name, needed in zip(names, ctx.needs_input_grad[3:]) if needed]
        arrays, ctx.adjoint = run({name: array_of(t, wide) for name, t in zip(names, tensors)}, wanted)
        ctx.names, ctx.results, ctx.wide = names, results, wide
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)  # notices a change in place before the adjoint has read them
        return tensors_of(arrays, tensors[0].dtype, wide)

    @staticmethod
    @once_differentiable
    def backward(ctx, *arriving):
        tensors = ctx.saved_tensors
        cotangents = {name: array_of(g, ctx.wide) for name, g in zip(ctx.results, arriving) if g is not None}
        found = ctx.adjoint(cotangents) if cotangents else {}
        gradients = (found.get(name) for name in ctx.names)
        return None, None, None, *(g if g is None else torch.from_numpy(g).to(t.dtype)
                                   for g, t in zip(gradients, tensors))


def differentiable(run, tensors, results):
    """run(arrays, wanted) on a dict of tensors, as a node of autograd's graph. → a tensor per name in `results`.

    run takes the arrays by name and the names of those whose gradients are wanted, and returns its results in order
    and, if any are wanted, a function from arriving gradients by result's name to a dict of gradients by name.
    """
    for name, tensor in tensors.items():
        check_tensor(tensor, name)
    names, values = tuple(tensors), tuple(tensors.values())
    if torch.is_grad_enabled() and any(t.requires_grad for t in values):
        return _Call.apply(run, names, tuple(results), *values)
    wide = widest(values)
    arrays, _ = run({name: array_of(t, wide) for name, t in tensors.items()}, ())
    return tensors_of(arrays, values[0].dtype, wide)


class _Turned(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        return torch.from_numpy(_core.row_major(tensor.detach().transpose(1, 2).numpy()))

    @staticmethod
    def backward(ctx, arriving):
        return arriving.transpose(1, 2)


def turned(tensor):
    """[B, T, D] → [B, D, T] in row-major order."""
    compiling = hasattr(torch, "compiler") and torch.compiler.is_compiling()
    if compiling or tensor.dtype not in (torch.float32, torch.float64):
        return tensor.transpose(1, 2).contiguous()
    return _Turned.apply(tensor)
