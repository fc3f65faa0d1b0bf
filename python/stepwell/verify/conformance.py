# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The conformance kit: what every recurrence must keep, measured on anybody's functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

import numpy as np

from .arrays import is_torch, leaves, mapped, to_numpy
from .report import RELATIVE, Report, Tally


def check(
    step_fn: Callable | None, sequence_fn: Callable, inputs: Mapping[str, Any], *, state: Any = None,
    backward_fn: Callable | None = None, extremes: Mapping[str, Sequence[float]] | None = None, name: str = "function",
    tolerance: float | None = None, seed: int = 0, out: Callable | None = print,
) -> Report:
    """Checks a recurrence that is given as two functions, of NumPy arrays or torch tensors.

    sequence_fn(**inputs, state=state) → (y, state)   a whole sequence
    step_fn(**inputs_of_one_token, state=state) → (y, state)   one token; None: not checked

    inputs    a dict of token arrays [B, T, …], batch and time first: arrays, or shapes to be drawn from (normal
              numbers, float64). step_fn gets them as [B, …]. If one is a torch tensor, the functions are given
              torch tensors.
    state     the state to start from: None, an array [B, …], or a tuple, list or dict of such.
    y, state  of the functions: arrays, y [B, T, …] and [B, …], or tuples, lists, dicts of arrays; a state may be
              anything that the functions take back, but only its arrays are compared.
    backward_fn(grad_y, grad_state, **inputs, state=state) → gradients by input's name, and by "state": of
              Σ y·grad_y + Σ state·grad_state, grad_y and grad_state nested like y and state (state's is None where it
              holds no arrays). None: torch's autograd differentiates sequence_fn; with NumPy gradients are not run.
    extremes  {input's name: values}: numbers that this input may reach, such as {"g": [0, -50, -math.inf]}: everywhere
              and at single tokens. Results must be finite, and equal to those of step_fn.
    tolerance  |Δ| allowed, relative to the largest expected value; None: 2e-5 in float32, 1e-11 in float64; 0: the
              same bits.

    The rows: "step = sequence", "causality" (changing inputs after t changes nothing at or before t), "resume" (cut in
    two, the state handed over), "batch independence" (a row alone is the row in the batch), "inputs unchanged",
    "gradients" (against finite differences, in float64: the functions are then called with float64 arrays), "extreme
    gates". → Report.
    """
    subject = _Subject(step_fn, sequence_fn, inputs, state, backward_fn, name, tolerance, np.random.default_rng(seed))
    report = Report(out)
    report.start()
    for promise, measure in _PROMISES:
        tally = Tally(name, promise)
        try:
            not_run = measure(subject, tally, extremes or {})
        except Exception as error:  # a function that throws has not kept its promise
            not_run = None
            tally.fail(f"{type(error).__name__}: {error}")
        report.add(tally.row(not_run or "nothing to compare"))
    return report.finish()


class _Subject:
    def __init__(self, step_fn, sequence_fn, inputs, state, backward_fn, name, tolerance, rng):
        self.step_fn, self.sequence_fn, self.backward_fn = step_fn, sequence_fn, backward_fn
        self.tolerance, self.rng = tolerance, rng
        self.torch = any(is_torch(value) for value in inputs.values()) or any(
            is_torch(value) for value in _array_items(state))
        self.inputs = {key: rng.standard_normal(value) if isinstance(value, tuple) else np.array(to_numpy(value))
                       for key, value in inputs.items()}
        self.state = mapped(state, lambda array: np.array(to_numpy(array)))
        shapes = {key: value.shape[:2] for key, value in self.inputs.items()}
        if not shapes or any(len(shape) < 2 or shape != next(iter(shapes.values())) for shape in shapes.values()):
            raise ValueError(f"inputs start with {shapes}, expected the same batch and time, [B, T, …], for all")
        self.batch, self.time = next(iter(shapes.values()))
        self.dtype = next(iter(self.inputs.values())).dtype

    def given(self, nest):
        """A nest of NumPy arrays as the functions take it; their own copies."""
        if not self.torch:
            return mapped(nest, np.array)
        import torch

        return mapped(nest, lambda array: torch.from_numpy(np.array(array)))

    def sequence(self, inputs, state):
        return _pair(self.sequence_fn(**self.given(inputs), state=self.given(state)), "sequence_fn")

    def steps(self, inputs, state):
        """The outputs of step_fn, each leaf stacked over time, and the last state."""
        outputs, state = [], self.given(state)
        for t in range(self.time):
            token = self.given({key: value[:, t] for key, value in inputs.items()})
            y, state = _pair(self.step_fn(**token, state=state), "step_fn")
            outputs.append(leaves(y))
        stacked = [(path, np.stack([leaf[i][1] for leaf in outputs], axis=1))
                   for i, (path, _) in enumerate(outputs[0])]
        return stacked, leaves(state)

    def compare(self, tally, got, expected, what):
        """Leaves against leaves."""
        if [path for path, _ in got] != [path for path, _ in expected]:
            tally.fail(f"{what}: arrays {[p for p, _ in got]}, expected {[p for p, _ in expected]}")
            return
        for (path, a), (_, b) in zip(got, expected):
            if a.shape != b.shape:
                tally.fail(f"{what}{path}: shape {list(a.shape)}, expected {list(b.shape)}")
            elif a.size:
                relative = self.tolerance if self.tolerance is not None else RELATIVE.get(a.dtype.name, 0.0)
                difference, scale = _distance(a, b)
                tally.bounded(difference, relative * scale, scale, a.size, f"{what}{path}")


def _array_items(nest):
    found = []
    mapped(nest, found.append)
    return found


def _pair(result, what):
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"{what} returned a {type(result).__name__}, expected a tuple (y, state)")
    return result


def _distance(got, expected):
    """Largest |Δ| and largest |expected|; infinite where one is finite and the other is not."""
    a, b = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    difference = np.where(same, 0.0, np.where(finite, np.abs(np.where(finite, a - b, 0.0)), np.inf))
    return float(difference.max()), float(np.abs(b[np.isfinite(b)]).max(initial=0.0))


def _at_time(found, start, stop):
    return [(path, array[:, start:stop]) for path, array in found]


def _cuts(time):
    return sorted({t for t in (1, time // 3, time // 2, time - 1) if 0 < t < time})


def _step(subject, tally, extremes):
    if subject.step_fn is None:
        return "no step_fn was given"
    y, state = subject.sequence(subject.inputs, subject.state)
    stepped, last = subject.steps(subject.inputs, subject.state)
    subject.compare(tally, stepped, leaves(y), "y")
    subject.compare(tally, last, leaves(state), "state")


def _causality(subject, tally, extremes):
    y = leaves(subject.sequence(subject.inputs, subject.state)[0])
    for t in _cuts(subject.time):
        changed = {}
        for key, value in subject.inputs.items():
            later = value[:, t:]
            changed[key] = np.concatenate([value[:, :t], subject.rng.permuted(later, axis=0)[:, ::-1] * 2], axis=1)
        other = leaves(subject.sequence(changed, subject.state)[0])
        subject.compare(tally, _at_time(other, 0, t), _at_time(y, 0, t), f"inputs changed from {t} on: y")
    return "a sequence of one token has no later one"


def _resume(subject, tally, extremes):
    y, state = subject.sequence(subject.inputs, subject.state)
    for t in _cuts(subject.time):
        first = {key: value[:, :t] for key, value in subject.inputs.items()}
        rest = {key: value[:, t:] for key, value in subject.inputs.items()}
        y0, middle = subject.sequence(first, subject.state)
        y1, last = _pair(subject.sequence_fn(**subject.given(rest), state=middle), "sequence_fn")
        joined = [(path, np.concatenate([a, b], axis=1)) for (path, a), (_, b) in zip(leaves(y0), leaves(y1))]
        subject.compare(tally, joined, leaves(y), f"cut at {t}: y")
        subject.compare(tally, leaves(last), leaves(state), f"cut at {t}: state")
    return "a sequence of one token cannot be cut"


def _batch(subject, tally, extremes):
    if subject.batch < 2:
        return f"a batch of {subject.batch}, expected at least 2 rows"
    y, state = subject.sequence(subject.inputs, subject.state)
    for row in range(subject.batch):
        one = slice(row, row + 1)
        alone = subject.sequence({key: value[one] for key, value in subject.inputs.items()},
                                 mapped(subject.state, lambda array: array[one]))
        subject.compare(tally, leaves(alone[0]), [(p, a[one]) for p, a in leaves(y)], f"row {row} alone: y")
        subject.compare(tally, leaves(alone[1]), [(p, a[one]) for p, a in leaves(state)], f"row {row} alone: state")


def _unchanged(subject, tally, extremes):
    calls = [("sequence_fn", subject.sequence_fn, subject.inputs)]
    if subject.step_fn is not None:
        calls.append(("step_fn", subject.step_fn, {key: value[:, 0] for key, value in subject.inputs.items()}))
    for what, function, arrays in calls:
        given, state = subject.given(arrays), subject.given(subject.state)
        function(**given, state=state)
        for kind, after, before in (("", given, arrays), ("state", state, subject.state)):
            for (path, a), (_, b) in zip(leaves(after), leaves(before)):
                tally.bounded(0.0 if a.tobytes() == b.tobytes() else np.inf, 0.0, _distance(a, b)[1], a.size,
                              f"{what}: {kind}{path} afterwards")


def _gradients(subject, tally, extremes):
    if subject.backward_fn is None and not subject.torch:
        return "no backward_fn was given, and the arrays are not torch's"
    inputs = {key: value.astype(np.float64) for key, value in subject.inputs.items()}
    state = mapped(subject.state, lambda array: array.astype(np.float64))
    rng, weights = subject.rng, {}

    def loss(inputs, state):
        found = [leaves(part) for part in subject.sequence(inputs, state)]
        total = 0.0
        for part, arrays in zip(("y", "state"), found):
            for path, array in arrays:
                if array.dtype != np.float64:
                    raise TypeError(f"{part}{path} is {array.dtype} for float64 inputs, expected float64")
                weight = weights.setdefault(part + path, rng.standard_normal(array.shape))
                total += float(np.sum(weight * array))
        return total

    value = loss(inputs, state)
    gradients = (_autograd if subject.backward_fn is None else _given_gradients)(subject, inputs, state, weights)
    for path, array, replaced in _differentiated(inputs, state):
        if path not in gradients:
            tally.fail(f"there is no gradient of {path}")
            continue
        gradient = gradients[path]
        if gradient.shape != array.shape:
            tally.fail(f"the gradient of {path} is {list(gradient.shape)}, expected {list(array.shape)}")
            continue
        bound = 1e-6 * float(np.abs(gradient).max(initial=0.0)) + 1e-9 * max(1.0, abs(value))
        for direction in _directions(array, rng):
            h = 1e-6
            difference = (loss(*replaced(array + h * direction)) - loss(*replaced(array - h * direction))) / (2 * h)
            expected = float(np.sum(gradient * direction))
            length = float(np.abs(direction).sum())
            tally.bounded(abs(difference - expected), bound * max(1.0, length), abs(expected), 1,
                          f"the gradient of {path}")


def _directions(array, rng):
    """Along which an array is varied: two random directions, which no entry escapes, and single entries."""
    if array.size == 0:
        return
    scale = np.maximum(1.0, np.abs(array))
    for _ in range(2):
        yield rng.choice([-1.0, 1.0], array.shape) * scale
    for flat in rng.choice(array.size, min(8, array.size), replace=False):
        direction = np.zeros(array.shape)
        direction.flat[flat] = scale.flat[flat]
        yield direction


def _differentiated(inputs, state):
    """(path, array, function that puts another array in its place) for every input and array of the state."""
    for key, value in inputs.items():
        yield key, value, lambda array, key=key: ({**inputs, key: array}, state)
    for path, value in leaves(state, "state"):
        yield path, value, lambda array, value=value: (
            inputs, mapped(state, lambda other: array if other is value else other))


def _weights_like(nest, part, weights):
    found = iter([path for path, _ in leaves(nest)])
    return mapped(nest, lambda _: weights[part + next(found)])


def _given_gradients(subject, inputs, state, weights):
    y, last = subject.sequence(inputs, state)
    grad_y = subject.given(_weights_like(y, "y", weights))
    grad_state = subject.given(_weights_like(last, "state", weights)) if leaves(last) else None
    found = subject.backward_fn(grad_y, grad_state, **subject.given(inputs), state=subject.given(state))
    gradients = {}
    for key, nest in found.items():
        gradients.update(leaves(nest, key))
    return gradients


def _autograd(subject, inputs, state, weights):
    import torch

    given = mapped(subject.given(inputs), lambda tensor: tensor.requires_grad_())
    start = mapped(subject.given(state), lambda tensor: tensor.requires_grad_())
    y, last = _pair(subject.sequence_fn(**given, state=start), "sequence_fn")
    total = torch.zeros((), dtype=torch.float64)
    for part, nest in (("y", y), ("state", last)):
        found = iter([path for path, _ in leaves(nest)])
        for tensor in _array_items(nest):
            total = total + (torch.from_numpy(weights[part + next(found)]) * tensor).sum()
    total.backward()
    gradients = {}
    for key, nest in [*given.items(), ("state", start)]:
        gradients.update(leaves(mapped(nest, lambda t: torch.zeros_like(t) if t.grad is None else t.grad), key))
    return gradients


def _extremes(subject, tally, extremes):
    if not extremes:
        return "no extremes were given"
    for key, values in extremes.items():
        if key not in subject.inputs:
            raise ValueError(f"extremes of {key!r}, expected an input: {list(subject.inputs)}")
        for value in values:
            array = subject.inputs[key]
            single = np.where(subject.rng.random(array.shape[:2]).reshape(array.shape[:2] + (1,) * (array.ndim - 2))
                              < 0.3, np.asarray(value, array.dtype), array)
            for where, filled in (("everywhere", np.full_like(array, value)), ("at some tokens", single)):
                _extreme(subject, tally, {**subject.inputs, key: filled}, f"{key} = {value} {where}")


def _extreme(subject, tally, inputs, what):
    y, state = subject.sequence(inputs, subject.state)
    for part, nest in (("y", y), ("state", state)):
        for path, array in leaves(nest):
            bad = int(array.size - np.isfinite(array).sum())
            tally.compared += array.size
            if bad:
                tally.fail(f"{what}: {bad} numbers of {part}{path} are not finite")
    if subject.step_fn is not None:
        stepped, last = subject.steps(inputs, subject.state)
        subject.compare(tally, stepped, leaves(y), f"{what}: y")
        subject.compare(tally, last, leaves(state), f"{what}: state")


_PROMISES = (
    ("step = sequence", _step),
    ("causality", _causality),
    ("resume", _resume),
    ("batch independence", _batch),
    ("inputs unchanged", _unchanged),
    ("gradients", _gradients),
    ("extreme gates", _extremes),
)
