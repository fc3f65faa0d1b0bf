# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The mixers of the registry as modules: parameters under their published names, so that a published checkpoint's
state_dict fits; docs/mixers.md lists options, parameters and states.

>>> layer = stepwell.torch.layers.Mamba(64, d_state=16)
>>> y, state = layer(x)                  # x [B, T, 64] → y [B, T, 64]
>>> y1, state = layer.step(x1, state)    # x1 [B, 64]: the same code with T = 1, the same bits
"""

import functools

import torch
from torch import nn

from .. import layers as _layers
from .._calls import vjp
from ._function import differentiable
from .ops import borders_of

__all__ = ["Mixer", "make"]

_SEEDS = 2**62


def _outside_graphs(function):
    """torch.compile calls the function as it is."""
    return torch.compiler.disable(function) if hasattr(torch, "compiler") else function


class Mixer(nn.Module):
    """A token mixer: a recurrence with a state and parameters. Made by make() or by the class of its name.

    seed  of the first values, the same on every machine; None: drawn from torch's generator.
    dtype torch.float32 or torch.float64; module.to(…), .double(), .bfloat16() work as for any module: parameters and
          x of 16 bits are widened, exactly.
    """

    def __init__(self, name, width, *, seed=None, dtype=torch.float32, **options):
        super().__init__()
        self._layers = {}
        if seed is None:
            seed = int(torch.randint(_SEEDS, ()))
        layer = _layers.make(name, width, seed=seed, **options)
        self.name, self.width, self.config = layer.name, layer.width, layer.config
        self._names = []
        for path, value in layer.named_parameters().items():
            *folders, last = path.split(".")
            holder = self
            for folder in folders:
                if folder not in holder._modules:
                    holder.add_module(folder, nn.Module())
                holder = holder._modules[folder]
            holder.register_parameter(last, nn.Parameter(torch.from_numpy(value).to(dtype)))
            self._names.append(path)

    def _layer(self, dtype):
        """The layer of the library that computes in `dtype`. It is lent this module's parameters in every call."""
        if dtype not in self._layers:
            wide = "float64" if dtype == torch.float64 else "float32"
            self._layers[dtype] = _layers.make(self.name, self.width, dtype=wide, **self.config)
        return self._layers[dtype]

    def __getstate__(self):
        return {**self.__dict__, "_layers": {}}

    def extra_repr(self):
        options = (f", {name}={value!r}" for name, value in self.config.items() if name != "type")
        return f"{self.name!r}, {self.width}{''.join(options)}"

    @property
    def state_fields(self):
        """Names of the state's fields."""
        return self._layer(self._dtype()).state_fields

    def _named_tensors(self):
        """The parameters by name as attributes give them, so that functional_call, parametrizations and one parameter
        under two names have effect."""
        return {path: functools.reduce(getattr, path.split("."), self) for path in self._names}

    def _dtype(self):
        wide = any(p.dtype == torch.float64 for p in self._named_tensors().values())
        return torch.float64 if wide else torch.float32

    def initial_state(self, sequences):
        """What a call without a state starts from, a dict of tensors: zeros, unless the module learns it."""
        layer = self._layer(self._dtype())
        return {name: torch.from_numpy(value) for name, value in layer.initial_state(sequences).items()}

    @_outside_graphs
    def forward(self, x, state=None, *, cu_seqlens=None, mask=None, mode="exact"):
        """x [B, T, width] → y [B, T, width] and the state after the last token of every sequence, a dict of tensors
        [sequences, …] in the exchange format of published implementations; gradients pass through states.

        state       of an earlier call; None: the initial state.
        cu_seqlens  borders of packed sequences in a batch of 1, a state each.
        mask        [B, T], 1 for real tokens: pads are skipped altogether and give 0.
        mode        "exact": token by token, the same bits however the tokens come; "fast": chunks where there are
                    chunks, equal up to rounding.
        """
        layer = self._layer(torch.float64 if isinstance(x, torch.Tensor) and x.dtype == torch.float64
                            else self._dtype())
        tensors = {"x": x}
        if state is not None:
            if set(state) != set(layer.state_fields):
                raise ValueError(f"the state has the fields {sorted(state)}, expected {sorted(layer.state_fields)}")
            tensors.update({f"state.{name}": state[name] for name in layer.state_fields})
        tensors.update({f"param.{name}": value for name, value in self._named_tensors().items()})
        options = dict(cu_seqlens=borders_of(cu_seqlens), mode=mode,
                       mask=mask.numpy() if isinstance(mask, torch.Tensor) else mask)

        def run(arrays, wanted):
            return _run_layer(layer, arrays, options, wanted)

        y, *fields = differentiable(run, tensors, ["y", *(f"state.{name}" for name in layer.state_fields)])
        return y, dict(zip(layer.state_fields, fields))

    def step(self, x, state=None, **options):
        """One token of every sequence: x [B, width] → y [B, width] and the state after it."""
        y, state = self(x.unsqueeze(1), state, **options)
        return y.squeeze(1), state


def _part(arrays, kind):
    return {name[len(kind):]: array for name, array in arrays.items() if name.startswith(kind)}


def _run_layer(layer, arrays, options, wanted):
    """A layer on arrays as differentiable() takes it: "x", "state.FIELD", "param.NAME"."""
    call = dict(options, state=_part(arrays, "state.") or None, parameters=_part(arrays, "param."))
    adjoint = None
    if wanted:
        (y, last), backward = vjp(layer.forward, arrays["x"], wrt=wanted, **call)

        def adjoint(cotangents):
            nested = backward(cotangents.get("y"), _part(cotangents, "state."))
            flat = {f"state.{name}": g for name, g in nested.get("state", {}).items()}
            flat.update({f"param.{name}": g for name, g in nested.get("parameters", {}).items()})
            return {**flat, "x": nested.get("x")}
    else:
        y, last = layer.forward(arrays["x"], **call)
    return (y, *(last[name] for name in layer.state_fields)), adjoint


def make(name, width, *, seed=None, dtype=torch.float32, **options):
    """A module of the registry by name: stepwell.layers.names() lists them, docs/mixers.md their options."""
    return Mixer(name, width, seed=seed, dtype=dtype, **options)


def _class_of(kind, name):
    def __init__(self, width, *, seed=None, dtype=torch.float32, **options):
        Mixer.__init__(self, name, width, seed=seed, dtype=dtype, **options)

    return type(kind, (Mixer,), {"__init__": __init__, "__doc__": getattr(_layers, kind).__doc__,
                                 "__module__": __name__})


for _name in _layers.names():
    _kind = "".join(part.capitalize() for part in _name.split("_"))
    globals()[_kind] = _class_of(_kind, _name)
    __all__.append(_kind)
