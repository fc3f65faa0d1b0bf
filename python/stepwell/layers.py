# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Whole layers: the mixers of the registry, under their published names for parameters, options and states.

>>> layer = stepwell.layers.make("mamba", 64, d_state=16)
>>> y, state = layer(x)                    # x [B, T, 64] → y [B, T, 64]
>>> y1, state = layer.step(x1, state)      # x1 [B, 64]: the same code with T = 1, the same bits

docs/mixers.md lists options, parameters and states.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from . import _arrays, _core
from ._arrays import Array, Borders
from ._calls import _cotangents, recorder, wanted_names
from ._parameters import Parameters, is_wide

__all__ = ["Layer", "State", "make", "names"]


class State(Mapping):
    """A layer's state after a token, one per sequence; never changes. As a mapping it has the fields of the exchange
    format of published implementations, by name, as NumPy arrays [sequences, …]. A copy is the state itself; pickled,
    it becomes a dict of its fields, which every call takes in its place."""

    def __init__(self, layer, own):
        self._layer = layer
        self._own = own
        self._fields = None

    def _exported(self):
        if self._fields is None:
            self._fields = self._layer.export_state(self._own)
        return self._fields

    def __getitem__(self, name: str) -> np.ndarray:
        return self._exported()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._layer.state_fields)

    def __len__(self) -> int:
        return len(self._layer.state_fields)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return dict, (dict(self),)

    def __repr__(self):
        return f"State({', '.join(f'{name} {list(value.shape)}' for name, value in self.items())})"


class Layer(Parameters):
    """A token mixer: a recurrence with a state and parameters. Made by make() or by the class of its name."""

    def __init__(self, name: str, width: int, *, seed: int = 0, dtype: Any = "float32", **options: Any):
        self._core = _core.make_layer(name, operator.index(width), options, operator.index(seed), is_wide(dtype))

    def __getstate__(self):
        return {"name": self.name, "width": self.width, "dtype": str(self.dtype), "config": self.config,
                "parameters": self.named_parameters()}

    def __setstate__(self, state):
        Layer.__init__(self, state["name"], state["width"], dtype=state["dtype"], **state["config"])
        self.set_named_parameters(state["parameters"])

    @property
    def name(self) -> str:
        """Its row in the registry: "mamba"."""
        return self._core.type

    @property
    def width(self) -> int:
        """Extent of the last dimension of x and y."""
        return self._core.width

    @property
    def state_fields(self) -> list[str]:
        """Names of the state's fields in the exchange format."""
        return list(self._core.state_fields)

    def to(self, dtype: Any) -> Layer:
        """Converts the parameters to "float32" or "float64". → the layer."""
        self._core.to(is_wide(dtype))
        return self

    def prepare(self) -> Layer:
        """Packs matrices for faster calls without gradients; the same bits. → the layer."""
        self._core.prepare()
        return self

    def initial_state(self, sequences: int) -> State:
        """What a call without a state starts from: zeros, unless the layer learns it."""
        return State(self._core, self._core.initial_state(int(sequences)))

    def export_state(self, state: State) -> dict[str, np.ndarray]:
        """A dict of the state's fields in the exchange format."""
        return dict(self._own_state(state))

    def import_state(self, fields: Mapping[str, Array]) -> State:
        """A State from a mapping of all fields of the exchange format."""
        arrays = [np.ascontiguousarray(array) for array in self._state_arrays(fields).values()]
        return State(self._core, self._core.import_state(arrays))

    def forward(
        self, x: Array, state: State | Mapping[str, Array] | None = None, *, cu_seqlens: Borders | None = None,
        mask: Array | None = None, mode: str = "exact", parameters: Mapping[str, Array] | None = None,
    ) -> tuple[np.ndarray, State]:
        """x [B, T, width] → y [B, T, width] and the state after the last token of every sequence.

        state       of an earlier call, or a mapping of fields in the exchange format; None: the initial state.
        cu_seqlens  borders of packed sequences in a batch of 1, a state each.
        mask        [B, T], 1 for real tokens: pads are skipped altogether and give 0.
        mode        "exact": token by token, the same bits however the tokens come; "fast": the forms that training
                    uses, equal up to rounding.
        parameters  by published name, used in this call instead of the layer's own, without a copy.

        With stepwell.vjp the gradients are those of x, of the state's fields (if it came as a mapping), and of the
        parameters: {"x": …, "state": {field: …}, "parameters": {name: …}}; backward takes the gradient arriving at y
        and a mapping of those arriving at the state's fields.
        """
        arrays = {"x": x}
        own = None
        if isinstance(state, State):
            own = self._own_state(state)._own
        elif state is not None:
            arrays.update({f"state.{name}": value for name, value in self._state_arrays(state).items()})
        for name, value in (parameters or {}).items():
            arrays[f"param.{name}"] = value
        arrays = _arrays.float_arrays(arrays)
        record = recorder()
        wanted = None
        if record is not None:
            names = set(arrays) | {f"param.{name}" for name in self._parameter_names()}
            wanted = wanted_names(record, names)
        call, last = self._core.call(arrays, own, _arrays.integer_array(cu_seqlens, "cu_seqlens"),
                                     _arrays.mask_array(mask, "mask"), mode, wanted)
        if record is not None:
            record.take(self._backward(call))
        return call.results()[0], State(self._core, last)

    __call__ = forward

    def step(
        self, x: Array, state: State | Mapping[str, Array] | None = None, **options: Any
    ) -> tuple[np.ndarray, State]:
        """One token of every sequence: x [B, width] → y [B, width] and the state after it."""
        y, state = self.forward(_arrays.float_array(x, "x")[:, None], state, **options)
        return y[:, 0], state

    def _parameter_names(self):
        return self._core.parameter_names

    def _own_state(self, state):
        if not isinstance(state, State) or state._layer is not self._core:
            raise TypeError("the state is of another layer, expected one that this layer gave")
        return state

    def _state_arrays(self, fields):
        if not isinstance(fields, Mapping):
            raise TypeError(f"the state is a {type(fields).__name__}, expected a State or a mapping of "
                            f"{', '.join(self.state_fields)}")
        if set(fields) != set(self.state_fields):
            raise ValueError(f"the state has the fields {sorted(fields)}, expected {sorted(self.state_fields)}")
        arrays = {name: _arrays.float_array(fields[name], name) for name in self.state_fields}
        for name, array in arrays.items():
            if array.dtype != self.dtype:
                raise TypeError(f"{name} has dtype {array.dtype}, expected {self.dtype}, that of the parameters")
        return arrays

    def _backward(self, call):
        dtype, fields = self.dtype, self.state_fields

        def backward(y=None, state=None):
            gradients = {"y": y}
            unknown = set(state or {}) - set(fields)
            if unknown:
                raise ValueError(f"gradients of {sorted(unknown)}, expected fields of the state: {fields}")
            gradients.update({f"state.{name}": value for name, value in (state or {}).items()})
            flat = call.backward(_cotangents((), gradients, tuple(gradients), dtype))
            nested = {}
            for name, gradient in flat.items():
                kind, _, rest = name.partition(".")
                if kind == "x":
                    nested["x"] = gradient
                else:
                    nested.setdefault("state" if kind == "state" else "parameters", {})[rest] = gradient
            return nested

        return backward

    def __repr__(self):
        return f"stepwell.layers.make({self.name!r}, {self.width}, dtype={str(self.dtype)!r})"


def names() -> list[str]:
    """Names of all layers."""
    return [name for name, _, _ in _core.mixers()]


def make(name: str, width: int, *, seed: int = 0, dtype: Any = "float32", **options: Any) -> Layer:
    """A layer of the registry by name, with its first values drawn from `seed`: the same on every machine. Unknown
    options throw; docs/mixers.md lists them."""
    return Layer(name, width, seed=seed, dtype=dtype, **options)


def _class_of(name, summary, source):
    def __init__(self, width, *, seed=0, dtype="float32", **options):
        Layer.__init__(self, name, width, seed=seed, dtype=dtype, **options)

    page = f"{summary[0].upper()}{summary[1:]} ({source}). Options: docs/mixers.md."
    members = {"__init__": __init__, "__doc__": page, "__module__": __name__}
    return type("".join(part.capitalize() for part in name.split("_")), (Layer,), members)


def __getattr__(name: str) -> type[Layer]:
    """For the classes below, which type checkers cannot see, and for a better message."""
    classes = [known for known in __all__ if known[0].isupper() and known not in ("Layer", "State")]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; its layers are {', '.join(classes)}")


for _row in _core.mixers():
    _class = _class_of(*_row)
    globals()[_class.__name__] = _class
    __all__.append(_class.__name__)
