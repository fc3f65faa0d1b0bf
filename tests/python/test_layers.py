# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The layers of the registry from Python."""

import copy
import json
import pickle

import numpy as np
import pytest

import stepwell
from stepwell import _core, layers

WIDTH = 12
# By the name of a case: a layer and one of its configurations of the conformance suite.
CASES = {
    f"{name} {i}": (name, json.loads(options))
    for name in layers.names()
    for i, options in enumerate(_core.conformance_options(name))
}


def made(case, **more):
    name, options = CASES[case]
    return layers.make(name, WIDTH, **options, **more)


def same_state(a, b):
    return list(a) == list(b) and all(a[key].tobytes() == b[key].tobytes() for key in a)


def test_every_layer_of_the_registry_is_here():
    for name in layers.names():
        cls = getattr(layers, "".join(part.capitalize() for part in name.split("_")))
        layer = cls(WIDTH, **CASES[f"{name} 0"][1])
        assert isinstance(layer, layers.Layer) and layer.name == name and layer.width == WIDTH
        assert "arXiv" in cls.__doc__ and cls.__name__ in layers.__all__


@pytest.mark.parametrize("case", CASES)
def test_steps_are_the_sequence_to_the_last_bit(case, rng):
    layer = made(case)
    x = rng.standard_normal((2, 9, WIDTH)).astype(np.float32)
    y, last = layer(x)
    state = None
    for t in range(x.shape[1]):
        out, state = layer.step(x[:, t], state)
        assert out.tobytes() == y[:, t].tobytes()
    assert same_state(state, last)
    assert same_state(layer.prepare()(x)[1], last)


@pytest.mark.parametrize("case", CASES)
def test_states_go_out_and_in(case, rng):
    layer = made(case)
    x = rng.standard_normal((2, 9, WIDTH)).astype(np.float32)
    _, middle = layer(x[:, :4])
    y, last = layer(x[:, 4:], middle)
    exported = layer.export_state(middle)
    assert list(exported) == layer.state_fields and len(middle) == len(exported)
    for start in (exported, layer.import_state(exported)):
        y2, last2 = layer(x[:, 4:], start)
        np.testing.assert_allclose(y2, y, rtol=1e-5, atol=1e-6)
        for key in last:
            np.testing.assert_allclose(last2[key], last[key], rtol=1e-5, atol=1e-6)
    y3, _ = layer(x[:, 4:], middle)
    assert y3.tobytes() == y.tobytes(), "a state that was used changed"


@pytest.mark.parametrize("case", CASES)
def test_gradients_of_input_state_and_parameters(case, rng):
    layer = made(case, dtype="float64")
    x = rng.standard_normal((2, 5, WIDTH))
    state = {key: value + 0.37 for key, value in layer.export_state(layer.initial_state(2)).items()}
    (y, last), backward = stepwell.vjp(layer, x, state)
    weight, weights = rng.standard_normal(y.shape), {key: rng.standard_normal(a.shape) for key, a in last.items()}
    gradients = backward(weight, weights)
    parameters = layer.named_parameters()
    assert set(gradients) == {"x", "state", "parameters"} and set(gradients["state"]) == set(state)
    assert set(gradients["parameters"]) == set(parameters)

    def loss(x, state, parameters):
        y, last = layer(x, state, parameters=parameters)
        return float(np.sum(weight * y)) + sum(float(np.sum(weights[key] * a)) for key, a in last.items())

    def check(gradient, along):
        h, value = 1e-6, loss(x, state, parameters)
        gradient = np.zeros(1) if gradient is None else gradient  # nothing depends on it
        direction = rng.choice([-1.0, 1.0], gradient.shape)
        found = (along(h * direction) - along(-h * direction)) / (2 * h)
        bound = 1e-6 * np.abs(gradient).sum() + 1e-9 * max(1, abs(value)) * max(1, gradient.size)
        assert abs(found - np.sum(gradient * direction)) <= bound

    check(gradients["x"], lambda d: loss(x + d, state, parameters))
    for key in state:
        check(gradients["state"][key], lambda d: loss(x, {**state, key: state[key] + d}, parameters))
    for key in parameters:
        check(gradients["parameters"][key], lambda d: loss(x, state, {**parameters, key: parameters[key] + d}))


@pytest.mark.parametrize("case", CASES)
def test_parameters_go_out_and_in(case, rng):
    layer, other = made(case), made(case, seed=7)
    x = rng.standard_normal((2, 5, WIDTH)).astype(np.float32)
    y = layer(x)[0]
    assert layer(x)[0].tobytes() == y.tobytes() == made(case)(x)[0].tobytes()
    lent = other.prepare()(x, parameters=layer.named_parameters())[0]
    own = other(x)[0]
    assert lent.tobytes() == y.tobytes() and own.tobytes() == made(case, seed=7)(x)[0].tobytes()
    other.set_named_parameters(layer.named_parameters())
    assert other(x)[0].tobytes() == y.tobytes()
    copies = layer.named_parameters()
    for value in copies.values():
        value[...] = 0
    assert layer(x)[0].tobytes() == y.tobytes()
    again = layers.make(layer.name, WIDTH, **{key: value for key, value in layer.config.items()})
    assert again.config == layer.config
    assert layer.to("float64").dtype == np.float64 and layer(x.astype(np.float64))[0].dtype == np.float64


@pytest.mark.parametrize("case", CASES)
def test_packed_and_padded_sequences(case, rng):
    layer = made(case)
    x = rng.standard_normal((1, 9, WIDTH)).astype(np.float32)
    y, last = layer(x, cu_seqlens=[0, 4, 9])
    padded = np.zeros((2, 5, WIDTH), np.float32)
    padded[0, :4], padded[1] = x[0, :4], x[0, 4:]
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
    for real in (mask, mask.astype(bool), mask.astype(np.uint8)):
        y2, last2 = layer(padded, mask=real)
        assert y2[0, :4].tobytes() == y[0, :4].tobytes() and y2[1].tobytes() == y[0, 4:].tobytes()
        assert (y2[0, 4:] == 0).all() and same_state(last, last2)


@pytest.mark.parametrize("case", CASES)
def test_layers_are_copied_and_pickled(case, rng):
    layer = made(case, seed=2, dtype="float64")
    layer.set_named_parameters({name: value + 0.1 for name, value in layer.named_parameters().items()})
    x = rng.standard_normal((2, 5, WIDTH))
    y, state = layer(x)
    for other in (copy.copy(layer), copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(other) is type(layer) and other.dtype == layer.dtype and other.config == layer.config
        assert other(x)[0].tobytes() == y.tobytes()
    other.set_named_parameters({name: 0 * value for name, value in other.named_parameters().items()})
    assert layer(x)[0].tobytes() == y.tobytes()
    following = layer(x, state)[0]
    for kept in (copy.copy(state), copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
        assert layer(x, kept)[0].tobytes() == following.tobytes()


def test_classes_are_pickled():
    layer = layers.Mamba(WIDTH, seed=3)
    assert isinstance(pickle.loads(pickle.dumps(layer)), layers.Mamba)


def test_errors_say_what_is_wrong():
    with pytest.raises(TypeError, match="float"):
        layers.make("mamba", 12.5)
    layer = made("mamba 0")
    x = np.zeros((2, 5, WIDTH), np.float32)
    with pytest.raises(stepwell.Error, match="unknown mixer mambo, did you mean mamba"):
        layers.make("mambo", 8)
    with pytest.raises(AttributeError, match="no attribute 'Mambo'; its layers are Mamba, Mamba2, "):
        layers.Mambo(8)
    with pytest.raises(stepwell.Error, match="d_stat"):
        layers.make("mamba", 8, d_stat=4)
    with pytest.raises(stepwell.Error, match=r"x is \[2, 5, 11\]"):
        layer(x[..., :11])
    with pytest.raises(stepwell.Error, match="x is F64, the parameters are F32"):
        layer(x.astype(np.float64))
    with pytest.raises(stepwell.Error, match="mode"):
        layer(x, mode="quick")
    with pytest.raises(ValueError, match="expected float32 or float64"):
        layers.make("mamba", 8, dtype="float16")
    with pytest.raises(TypeError, match="of another layer"):
        layer(x, made("mamba 0")(x)[1])
    with pytest.raises(ValueError, match="the state has the fields"):
        layer(x, {"h": x})
    with pytest.raises(TypeError, match="the state is a ndarray"):
        layer(x, x)
    with pytest.raises(stepwell.Error, match="no parameters of the layer: nothing"):
        layer(x, parameters={"nothing": x})
    with pytest.raises(stepwell.Error, match="A_log"):
        layer(x, parameters={"A_log": x})
    before = layer(x + 1)[0]
    with pytest.raises(stepwell.Error) as error:
        layer.set_named_parameters({"A_log": x, "nothing": x})
    assert "nothing" in str(error.value) and "D" in str(error.value)
    assert layer(x + 1)[0].tobytes() == before.tobytes()
    with pytest.raises(ValueError, match="integers other than 0 and 1"):
        layer(x, mask=np.full((2, 5), 2))
    with pytest.raises(ValueError, match="expected fields of the state"):
        stepwell.vjp(layer, x)[1](None, {"nothing": x})
