# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The ops: states, packed sequences, gradients, named rows, errors."""

import numpy as np
import pytest
from op_calls import flat, op_calls

import stepwell
from stepwell import ops, verify

# Ops over tokens with a carried state, and their token arrays.
STATEFUL = {
    "gated_delta": "q k v g b w",
    "gated_delta softplus gate": "q k v g b w",
    "gated_delta_net": "q k v g beta",
    "delta_net": "q k v beta",
    "simple_gla": "q k v g",
    "ssd": "x dt B C z",
    "mlstm": "q k v i f",
    "slstm": "x",
    "selective_scan": "u dt B C z",
    "selective_scan constant": "u dt z",
    "short_conv": "x",
}


def same(a, b):
    return len(a) == len(b) and all(x.tobytes() == y.tobytes() for x, y in zip(flat(a), flat(b)))


def parts(name, rng, dtype=np.float32):
    """function(tokens, state) → (y, state), token arrays, the state's arrays by name."""
    function, arrays, options = op_calls(rng, dtype)[name]
    tokens = {key: arrays[key] for key in STATEFUL[name].split()}
    state_names = ["initial_state"] if "initial_state" in arrays else ["C", "n", "m"]
    rest = {key: value for key, value in arrays.items() if key not in tokens and key not in state_names}

    def run(tokens, state, **more):
        named = dict(zip(state_names, state if isinstance(state, (tuple, list)) else [state]))
        return function(**tokens, **rest, **named, **options, **more)

    return run, tokens, [arrays[key] for key in state_names], state_names


@pytest.mark.parametrize("name", STATEFUL)
def test_steps_are_the_sequence_to_the_last_bit(name, rng):
    run, tokens, state, _ = parts(name, rng)
    y, last = run(tokens, state)
    outputs, carried = [], state
    for t in range(y.shape[1]):
        piece, carried = run({key: a[:, t : t + 1] for key, a in tokens.items()}, carried)
        outputs.append(piece)
    assert np.concatenate(outputs, axis=1).tobytes() == y.tobytes()
    assert same(carried, last)


@pytest.mark.parametrize("name", STATEFUL)
def test_packed_sequences_are_the_sequences_alone(name, rng):
    run, tokens, state, _ = parts(name, rng)
    packed = {key: a.reshape(1, -1, *a.shape[2:]) for key, a in tokens.items()}
    total = next(iter(packed.values())).shape[1]
    borders = [0, 3, 3, total]
    states = [np.stack([s[0], s[1], s[1] * 0 + s[0]]) for s in state]
    y, last = run(packed, states, cu_seqlens=borders)
    for i, (start, stop) in enumerate(zip(borders, borders[1:])):
        one, one_last = run({key: a[:, start:stop] for key, a in packed.items()}, [s[i : i + 1] for s in states])
        assert one.tobytes() == y[:, start:stop].tobytes()
        assert same(one_last, [s[i : i + 1] for s in last] if isinstance(last, tuple) else last[i : i + 1])
    for integers in (np.array(borders, np.int32), np.array(borders, ">i8"), tuple(borders)):
        assert run(packed, states, cu_seqlens=integers)[0].tobytes() == y.tobytes()


@pytest.mark.parametrize("name", list(op_calls(np.random.default_rng(0))))
def test_gradients_are_those_of_finite_differences(name, rng):
    """Of every array, through every result, the last state among them."""
    function, arrays, options = op_calls(rng, np.float64)[name]
    results, backward = stepwell.vjp(function, **arrays, **options)
    weights = [rng.standard_normal(a.shape) for a in flat(results)]
    gradients = backward(*weights)
    assert set(gradients) == set(arrays)

    def loss(changed):
        return sum(float(np.sum(w * a)) for w, a in zip(weights, flat(function(**changed, **options))))

    for key, a in arrays.items():
        assert gradients[key].shape == a.shape and gradients[key].dtype == a.dtype
        for direction in (rng.choice([-1.0, 1.0], a.shape), rng.standard_normal(a.shape)):
            h = 1e-6
            found = (loss({**arrays, key: a + h * direction}) - loss({**arrays, key: a - h * direction})) / (2 * h)
            expected = float(np.sum(gradients[key] * direction))
            assert abs(found - expected) <= 1e-6 * np.abs(gradients[key] * direction).sum() + 1e-7, key


def test_vjp_of_some_arrays_only(rng):
    function, arrays, options = op_calls(rng)["selective_scan"]
    results, backward = stepwell.vjp(function, wrt=("u", "initial_state"), **arrays, **options)
    gradients = backward(None, results[1])
    assert set(gradients) == {"u", "initial_state"}
    assert backward(None, None) == {"u": None, "initial_state": None}
    assert same(gradients.values(), backward(final_state=results[1]).values())
    with pytest.raises(ValueError, match=r"wrt names \['nothing'\]"):
        stepwell.vjp(function, wrt=["nothing"], **arrays)
    with pytest.raises(TypeError, match="expected one each of y, final_state"):
        backward(nothing=results[1])
    with pytest.raises(TypeError, match="3 gradients for 2 results"):
        backward(None, None, None)
    with pytest.raises(stepwell.Error, match="gradient of y is F32"):
        backward(results[1])
    with pytest.raises(TypeError, match="expected an op"):
        stepwell.vjp(np.sum, arrays["u"])


def test_named_rows_are_the_general_rule(rng):
    _, arrays, _ = op_calls(rng)["gated_delta"]
    q, k, v, g, b, w = (arrays[key] for key in "qkvgbw")
    beta = w[..., 0].copy()
    assert same(ops.gated_delta_net2(q, k, v, g, b, w), ops.gated_delta(q, k, v, g, b, w))
    assert same(ops.kimi_delta_attention(q, k, v, g, beta), ops.gated_delta(q, k, v, g, beta, beta))
    assert same(ops.gated_linear_attention(q, k, v, g), ops.gated_delta(q, k, v, g))
    assert same(ops.linear_attention(q, k, v), ops.gated_delta(q, k, v))
    with pytest.raises(TypeError, match="beta beside b or w"):
        ops.gated_delta(q, k, v, w=w, beta=beta)


def test_forms_agree_and_say_so(rng):
    function, arrays, options = op_calls(rng)["gated_delta"]
    initial = arrays["initial_state"]
    rows = ops.verify_gated_delta(**arrays, **options, chunk=3)
    assert {row["form"] for row in rows} == {"recurrent", "chunked 3"}
    assert {row["output"] for row in rows} == {"o", "final_state"}
    for row in rows:
        assert row["relative"] <= verify.report.RELATIVE["float32"] and row["scale"] > 0
    assert initial is arrays["initial_state"]


def test_extreme_gates_stay_finite(rng):
    _, arrays, _ = op_calls(rng)["gated_delta"]
    for value in (0, -1e-30, -1e4, -np.inf):
        arrays["g"] = np.full_like(arrays["g"], value)
        results, backward = stepwell.vjp(ops.gated_delta, **arrays)
        gradients = backward(*results)
        assert all(np.isfinite(a).all() for a in [*results, *gradients.values()]), value


@pytest.mark.parametrize("call, words", [
    (lambda q, v: ops.gated_delta(q, q[:, :3], v), ["k is [2, 3, 2, 3]", "batch and time of q, [2, 5]"]),
    (lambda q, v: ops.gated_delta(q[0], q, v), ["q is [5, 2, 3]", "expected [B, T, heads, width]"]),
    (lambda q, v: ops.gated_delta(q, q, v[:, :, :3]), ["gated_delta", "heads"]),
    (lambda q, v: ops.gated_delta(q, q, v, initial_state=v), ["initial_state is [2, 5, 4, 4]", "[2, 4, 3, 4]"]),
    (lambda q, v: ops.gated_delta(q, q, v, cu_seqlens=[0, 5]), ["cu_seqlens", "batch of 1"]),
    (lambda q, v: ops.gated_delta(q[:1], q[:1], v[:1], cu_seqlens=[0, 9]), ["cu_seqlens", "number of tokens, 5"]),
    (lambda q, v: ops.gated_delta(q[:1], q[:1], v[:1], cu_seqlens=[1, 5]), ["cu_seqlens", "starts at 1"]),
    (lambda q, v: ops.gated_delta(q, q, v, form="parallel"), ["form", "recurrent", "chunked", "fast"]),
    (lambda q, v: ops.gated_delta(q, q, v, form="chunked", chunk=-1), ["chunk = -1"]),
    (lambda q, v: ops.gated_delta(q, q, v, form="chunked", chunk=2**63), ["chunk", "more than 64 bits"]),
    (lambda q, v: ops.gated_delta(q, q, v, gate="open"), ["gate", "softplus"]),
    (lambda q, v: ops.gated_delta(q, q, v, scale="large"), ["scale"]),
    (lambda q, v: ops.matmul(q[0, 0], q[0, 0]), ["[2, 3]"]),
    (lambda q, v: ops.rms_norm(q, group=2), ["group"]),
    (lambda q, v: ops.elementwise(q, "cosh"), ["cosh", "silu"]),
    (lambda q, v: ops.mlstm(q, q, v, q[..., 0], q[..., 0]), ["v"]),
    (lambda q, v: ops.selective_scan(q, q, q, q, q), ["u is [2, 5, 2, 3]", "[B, T, D]"]),
])
def test_what_does_not_fit_is_a_value_error_that_says_what_does(call, words, rng):
    q = rng.standard_normal((2, 5, 2, 3))
    v = rng.standard_normal((2, 5, 4, 4))
    with pytest.raises(ValueError) as error:
        call(q, v)
    assert isinstance(error.value, stepwell.Error)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("wrong", [[0.0, 5.0], np.array([[0, 5]]), "05", 5])
def test_borders_are_integers(wrong, rng):
    q = rng.standard_normal((1, 5, 2, 3))
    with pytest.raises(TypeError, match="cu_seqlens"):
        ops.linear_attention(q, q, q, cu_seqlens=wrong)


def altered(arrays, rng):
    """The arrays of a call with one or two of them missing, of another shape, transposed, or full of odd numbers."""
    arrays = dict(arrays)
    for _ in range(rng.integers(1, 3)):
        key = rng.choice(list(arrays))
        a, kind = arrays[key], rng.integers(0, 5)
        shape = list(a.shape)
        if kind == 0:
            shape = list(rng.integers(0, 6, rng.integers(0, 7)))
        elif kind == 1 and shape:
            shape[rng.integers(a.ndim)] = rng.integers(0, 7)
        elif kind == 2:
            shape = shape[::-1]
        if kind < 3:
            arrays[key] = rng.standard_normal(shape).astype(a.dtype)
        elif kind == 3:
            arrays[key] = np.full_like(a, rng.choice([0, np.inf, -np.inf, np.nan, 1e38, 1e-45]))
        elif len(arrays) > 1:
            del arrays[key]
    return arrays


@pytest.mark.parametrize("name", list(op_calls(np.random.default_rng(0))))
def test_any_shapes_and_numbers_give_a_result_or_an_error_of_ours(name, rng):
    ran = 0
    for _ in range(60):
        function, arrays, options = op_calls(rng)[name]
        arrays = altered(arrays, rng)
        try:
            results, backward = stepwell.vjp(function, **arrays, **options)
            gradients = backward(*flat(results))
        except (ValueError, TypeError):
            continue
        ran += 1
        assert {key: a.shape for key, a in gradients.items()} == {key: a.shape for key, a in arrays.items()}
    assert ran > 0
