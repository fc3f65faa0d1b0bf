# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""What the tests of stepwell.torch share: calls of every op on tensors, and stepwell.vjp in terms of autograd, so that
what was written for arrays runs through torch."""

import importlib.util
import inspect
import sys
from types import SimpleNamespace

import numpy as np
import torch

import stepwell.torch


def _over_tensors():
    """op_calls once more, with the functions on tensors in place of those on arrays."""
    path = importlib.util.find_spec("op_calls").origin
    spec = importlib.util.spec_from_file_location("op_calls_on_tensors", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ops = stepwell.torch.ops
    return module


_op_calls = _over_tensors()


def torch_op_calls(dtype=np.float64):
    """name → (function of tensors by argument's name, those tensors, options), for every op."""
    calls = _op_calls.op_calls(np.random.default_rng(5), dtype)
    return {name: (function, {key: torch.from_numpy(a) for key, a in arrays.items()}, options)
            for name, (function, arrays, options) in calls.items()}


def flat(results):
    if isinstance(results, torch.Tensor):
        return [results]
    return [tensor for part in results for tensor in flat(part)]


def numbers(seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=dtype)


# ------------------------------------------------------------------------------------------------ stepwell.vjp

def _leaf(array):
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.requires_grad_() if tensor.is_floating_point() else tensor


def _array(tensor):
    return None if tensor is None else tensor.detach().numpy()


def _gradients(outputs, cotangents, leaves):
    pairs = [(o, torch.from_numpy(np.ascontiguousarray(c))) for o, c in zip(outputs, cotangents) if c is not None]
    found = torch.autograd.grad([o for o, _ in pairs], list(leaves.values()), [c for _, c in pairs],
                                allow_unused=True)
    return {name: _array(gradient) for name, gradient in zip(leaves, found)}


def _vjp_of_op(function, args, kwargs):
    arguments = inspect.signature(function).bind(*args, **kwargs).arguments
    leaves = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            arguments[name] = leaves[name] = _leaf(value)
        elif isinstance(value, (tuple, list)) and all(isinstance(part, np.ndarray) for part in value):
            parts = {part: _leaf(array) for part, array in zip("Cnm", value)}
            arguments[name] = tuple(parts.values())
            leaves.update(parts)
        elif isinstance(value, np.ndarray):
            arguments[name] = torch.from_numpy(value)
    results = getattr(stepwell.torch.ops, function.__name__)(**arguments)
    outputs = flat(results)

    def backward(*cotangents, **named):
        names = {"gated_delta": ("o", "final_state"), "mlstm": ("h", "C", "n", "m")}
        order = names.get(function.__name__, ("y", "final_state"))
        given = dict(zip(order, cotangents), **named)
        return _gradients(outputs, [given.get(name) for name in order], leaves)

    if len(outputs) == 4:  # mlstm: h, (C, n, m)
        return (_array(outputs[0]), tuple(map(_array, outputs[1:]))), backward
    return tuple(map(_array, outputs)), backward


class _TorchLayer:
    """stepwell.layers.Layer as far as the runners of case files need it, around a module."""

    def __init__(self, name, width, dtype="float32", **options):
        self.module = stepwell.torch.layers.make(name, width, dtype=getattr(torch, dtype), **options)

    def set_named_parameters(self, parameters):
        self.module.load_state_dict({name: torch.from_numpy(array) for name, array in parameters.items()})


def _vjp_of_layer(layer, x, state, mode):
    module = layer.module
    leaves = {"x": _leaf(x)}
    fields = None if state is None else {name: _leaf(array) for name, array in state.items()}
    leaves.update({f"state.{name}": field for name, field in (fields or {}).items()})
    leaves.update({f"param.{name}": p for name, p in module.named_parameters()})
    y, last = module(leaves["x"], fields, mode=mode)

    def backward(cotangent, of_state):
        found = _gradients([y, *last.values()], [cotangent, *(of_state.get(name) for name in last)], leaves)

        def part(kind):
            return {name[len(kind):]: g for name, g in found.items() if name.startswith(kind)}

        return {"x": found["x"], "state": part("state."), "parameters": part("param.")}

    return (_array(y), {name: _array(field) for name, field in last.items()}), backward


def vjp(function, *args, **kwargs):
    if isinstance(function, _TorchLayer):
        return _vjp_of_layer(function, *args, **kwargs)
    return _vjp_of_op(function, args, kwargs)


over_torch = SimpleNamespace(vjp=vjp, layers=SimpleNamespace(make=_TorchLayer))
