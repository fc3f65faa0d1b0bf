# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""torch.ops.stepwell: an operator for every op of the library, so that torch.compile and torch.export see one node.

Outside compiled code autograd.Function is used instead: it keeps what the gradients need, where an operator, which can
only return tensors, computes the forward pass again.
"""

import torch
from torch import library

from ._function import array_of, tensors_of, widest
from ._table import OPS


def _run(name, arrays, options, borders, wanted=()):
    from .ops import borders_of, run_op

    given = {key: t for key, t in arrays.items() if t is not None}
    wide = widest(given.values())
    values, adjoint = run_op(name, options, borders_of(borders), {key: array_of(t, wide) for key, t in given.items()},
                             wanted)
    return values, adjoint, wide


class _Operator:
    """The operator of one op and the one of its gradients."""

    def __init__(self, name, row):
        self._name, self._row = name, row
        inputs = [f"Tensor{'?' if optional else ''} {array}" for array, optional in zip(row.arrays, row.optional)]
        inputs += [*row.schemas, "Tensor? cu_seqlens"]
        arriving = [f"Tensor? grad_{result}" for result in row.results]
        self.forward = library.custom_op(
            f"stepwell::{name}", self._forward, mutates_args=(),
            schema=f"({', '.join(inputs)}) -> ({', '.join(['Tensor'] * len(row.results))})")
        self.backward = library.custom_op(
            f"stepwell::{name}_backward", self._backward, mutates_args=(),
            schema=f"({', '.join([*inputs, *arriving, 'bool[] wanted'])}) -> Tensor[]")
        self.forward.register_fake(self._fake_forward)
        self.backward.register_fake(self._fake_backward)
        self.forward.register_autograd(self._differentiate, setup_context=self._remember)

    def _split(self, args):
        """→ arrays by name, options by name, borders, what follows."""
        row = self._row
        a, o = len(row.arrays), len(row.arrays) + len(row.options)
        return dict(zip(row.arrays, args[:a])), dict(zip(row.options, args[a:o])), args[o], args[o + 1:]

    def _results(self, values):
        return values[0] if len(self._row.results) == 1 else tuple(values)

    def _forward(self, *args):
        arrays, options, borders, _ = self._split(args)
        values, _, wide = _run(self._name, arrays, options, borders)
        return self._results(tensors_of(values, args[0].dtype, wide))

    def _fake_forward(self, *args):
        arrays, options, borders, _ = self._split(args)
        shapes = self._row.result_shapes(arrays, options, None if borders is None else borders.shape[0] - 1)
        wide = widest([t for t in arrays.values() if t is not None])
        return self._results([args[0].new_empty(shape, dtype=wide if i else args[0].dtype)
                              for i, shape in enumerate(shapes)])

    def _backward(self, *args):
        arrays, options, borders, rest = self._split(args)
        arriving = dict(zip(self._row.results, rest[:-1]))
        wanted = [name for name, needed in zip(arrays, rest[-1]) if needed]
        _, adjoint, wide = _run(self._name, arrays, options, borders, wanted)
        found = adjoint({name: array_of(g, wide) for name, g in arriving.items() if g is not None})
        return [torch.zeros_like(arrays[name]) if found[name] is None
                else torch.from_numpy(found[name]).to(arrays[name].dtype) for name in wanted]

    def _fake_backward(self, *args):
        arrays, _, _, rest = self._split(args)
        return [torch.empty_like(t, memory_format=torch.contiguous_format)
                for t, needed in zip(arrays.values(), rest[-1]) if needed]

    def _remember(self, ctx, inputs, output):
        arrays, options, borders, _ = self._split(inputs)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*arrays.values(), borders)
        ctx.options = tuple(options.values())

    def _differentiate(self, ctx, *arriving):
        *arrays, borders = ctx.saved_tensors
        nothing = (None,) * (len(ctx.options) + 1)
        wanted = list(ctx.needs_input_grad[:len(arrays)])
        if all(g is None for g in arriving):
            return (*(None for _ in arrays), *nothing)
        found = iter(self.backward(*arrays, *ctx.options, borders, *arriving, wanted))
        return (*(next(found) if needed else None for needed in wanted), *nothing)


_OPERATORS = {name: _Operator(name, row).forward for name, row in OPS.items()}


def call(name, arrays, options, cu_seqlens):
    """The operator on tensors by name. → its results, in a tuple."""
    row = OPS[name]
    if cu_seqlens is not None and not isinstance(cu_seqlens, torch.Tensor):
        cu_seqlens = torch.tensor(cu_seqlens, dtype=torch.int64)
    given = [options.get(option) for option in row.options]
    if name == "ssd" and options.get("dt_limit") is not None:
        low, high = options["dt_limit"]
        given[row.options.index("dt_limit")] = [0.0 if low is None else low, float("inf") if high is None else high]
    values = _OPERATORS[name](*[arrays.get(array) for array in row.arrays], *given, cu_seqlens)
    return (values,) if len(row.results) == 1 else values
