# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""stepwell.torch.ops: gradients, bits, types, strides, errors."""

import inspect
import resource
import typing

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import op_calls
import torch_calls
from torch_calls import flat, numbers

import stepwell
import stepwell.torch
from stepwell.torch._table import OPS

NAMES = sorted(op_calls.op_calls(np.random.default_rng(5)))


def call_of(name, dtype=np.float64):
    return torch_calls.torch_op_calls(dtype)[name]


def leaves_of(tensors):
    return {key: t.clone().requires_grad_() for key, t in tensors.items()}


def run_backward(function, leaves, options, cotangents=None):
    """→ results and gradients by argument, of Σ ⟨result, cotangent⟩."""
    results = flat(function(**leaves, **options))
    if cotangents is None:
        draw = numbers(9, results[0].dtype)
        cotangents = [draw(*r.shape) for r in results]
    wanted = [t for t in leaves.values() if t.requires_grad]
    gradients = torch.autograd.grad(results, wanted, cotangents, allow_unused=True)
    return results, dict(zip([key for key, t in leaves.items() if t.requires_grad], gradients))


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_gradcheck(name):
    function, tensors, options = call_of(name)
    leaves = leaves_of(tensors)
    assert torch.autograd.gradcheck(lambda *ts: tuple(flat(function(**dict(zip(leaves, ts)), **options))),
                                    tuple(leaves.values()), atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_as_on_arrays(name, dtype):
    function, tensors, options = call_of(name, dtype)
    over_arrays, arrays, _ = op_calls.op_calls(np.random.default_rng(5), dtype)[name]
    for got, expected in zip(flat(function(**tensors, **options)), op_calls.flat(over_arrays(**arrays, **options))):
        assert got.dtype == torch.from_numpy(expected).dtype
        assert np.array_equal(got.numpy(), expected)


def every_other(t):
    """The same values with gaps in every dimension."""
    gaps = torch.full([2 * n for n in t.shape], float("nan"), dtype=t.dtype)
    view = gaps[tuple(slice(1, None, 2) for _ in t.shape)]
    view.copy_(t)
    return view


def turned(t):
    """The same values with the dimensions in reverse order in memory."""
    order = list(range(t.dim()))[::-1]
    return t.permute(order).contiguous().permute(order)


@pytest.mark.parametrize("layout", [every_other, turned])
@pytest.mark.parametrize("name", NAMES)
def test_strides_do_not_change_bits(name, layout):
    function, tensors, options = call_of(name, np.float32)
    results, gradients = run_backward(function, leaves_of(tensors), options)
    strided = {key: layout(t).requires_grad_() for key, t in tensors.items()}
    draw = numbers(9, torch.float32)
    cotangents = [layout(draw(*r.shape)) for r in results]
    for got, expected in zip(flat(function(**strided, **options)), results):
        assert same_bits(got, expected)
    _, found = run_backward(function, strided, options, cotangents)
    for key, gradient in gradients.items():
        assert same_bits(found[key], gradient), key


def test_expanded_gradients_arrive():
    x = numbers()(3, 4).requires_grad_()
    stepwell.torch.ops.softmax(x).sum().backward()  # the gradient of a sum has strides of 0
    assert x.grad.abs().max() < 1e-15


def test_views_that_torch_negates_lazily():
    z = torch.view_as_complex(numbers()(3, 4, 2))
    negated = z.conj().imag
    assert negated.is_neg()
    assert torch.equal(stepwell.torch.ops.softmax(negated), stepwell.torch.ops.softmax(-z.imag))


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_one_argument_alone(name):
    function, tensors, options = call_of(name, np.float32)
    results, gradients = run_backward(function, leaves_of(tensors), options)
    for key in tensors:
        leaves = {k: t.clone().requires_grad_(k == key) for k, t in tensors.items()}
        one, found = run_backward(function, leaves, options)
        assert all(same_bits(a, b) for a, b in zip(one, results))
        assert same_bits(found[key], gradients[key]), key


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", NAMES)
def test_sixteen_bits_are_widened(name, dtype):
    function, tensors, options = call_of(name, np.float32)
    narrow = leaves_of({key: t.to(dtype) for key, t in tensors.items()})
    wide = leaves_of({key: t.to(dtype).float() for key, t in tensors.items()})
    expected = flat(function(**wide, **options))
    results = flat(function(**narrow, **options))
    assert same_bits(results[0], expected[0].to(dtype))
    assert all(same_bits(a, b) for a, b in zip(results[1:], expected[1:]))
    draw = numbers(9, torch.float32)
    cotangents = [draw(*r.shape).to(dtype) for r in results[:1]] + [draw(*r.shape) for r in results[1:]]
    _, gradients = run_backward(function, narrow, options, cotangents)
    _, of_wide = run_backward(function, wide, options, [c.float() for c in cotangents])
    for key, gradient in gradients.items():
        assert same_bits(gradient, of_wide[key].to(dtype)), key


def test_mixed_types_are_computed_in_the_widest():
    n = numbers()
    u, dt, A, B, C = n(2, 5, 6), n(2, 5, 6), -n(6, 3).abs(), n(2, 5, 3), n(2, 5, 3)
    scan = stepwell.torch.ops.selective_scan
    y, h = scan(u.bfloat16(), dt.bfloat16(), A.float(), B.bfloat16(), C.half())
    expected = scan(u.bfloat16().float(), dt.bfloat16().float(), A.float(), B.bfloat16().float(), C.half().float())
    assert y.dtype == torch.bfloat16 and h.dtype == torch.float32
    assert torch.equal(y, expected[0].bfloat16()) and torch.equal(h, expected[1])
    assert scan(u.float(), dt, A, B, C)[1].dtype == torch.float64


def test_states_carry_gradients_across_calls():
    n = numbers()
    q, k, v = n(1, 6, 2, 3), n(1, 6, 2, 3), n(1, 6, 2, 4)
    g = -n(1, 6, 2, 3).abs()
    leaves = [t.requires_grad_() for t in (q, k, v, g)]
    gla = stepwell.torch.ops.gated_linear_attention
    o, last = gla(*leaves)
    whole = torch.autograd.grad((o.sin().sum() + last.sum()), leaves)
    o1, middle = gla(*(t[:, :2] for t in leaves))
    o2, last = gla(*(t[:, 2:] for t in leaves), initial_state=middle)
    assert torch.equal(torch.cat([o1, o2], 1), o)
    for part, expected in zip(torch.autograd.grad(o1.sin().sum() + o2.sin().sum() + last.sum(), leaves), whole):
        assert torch.allclose(part, expected, rtol=1e-12, atol=1e-12)


def test_nothing_is_recorded_without_need():
    x = numbers()(2, 3)
    assert not stepwell.torch.ops.softmax(x).requires_grad
    with torch.no_grad():
        assert not stepwell.torch.ops.softmax(x.requires_grad_()).requires_grad


@pytest.mark.parametrize("time", [0, 1])
def test_short_sequences(time):
    n = numbers()
    q = n(2, time, 2, 3).requires_grad_()
    state = n(2, 2, 3, 4).requires_grad_()
    o, last = stepwell.torch.ops.linear_attention(q, n(2, time, 2, 3), n(2, time, 2, 4), initial_state=state)
    assert o.shape == (2, time, 2, 4)
    (o.sum() + last.sum()).backward()
    assert q.grad.shape == q.shape and state.grad.shape == state.shape
    if time == 0:
        assert torch.equal(last, state) and torch.equal(state.grad, torch.ones_like(state))


def test_packed_sequences_take_borders_in_any_form():
    n = numbers()
    q, k, v = n(1, 6, 2, 3), n(1, 6, 2, 3), n(1, 6, 2, 4)
    attention = stepwell.torch.ops.linear_attention
    expected = attention(q, k, v, cu_seqlens=[0, 2, 2, 6])
    assert expected[1].shape[0] == 3
    for borders in (torch.tensor([0, 2, 2, 6]), torch.tensor([0, 2, 2, 6], dtype=torch.int32), np.array([0, 2, 2, 6])):
        assert all(torch.equal(a, b) for a, b in zip(attention(q, k, v, cu_seqlens=borders), expected))


def test_minus_infinity_forgets():
    n = numbers()
    q, k, v = n(1, 4, 1, 3), n(1, 4, 1, 3), n(1, 4, 1, 2)
    g = torch.zeros(1, 4, 1, 3, dtype=torch.float64)
    g[:, 2] = -float("inf")
    leaves = [t.requires_grad_() for t in (q, k, v)]
    o, last = stepwell.torch.ops.gated_linear_attention(*leaves, g)
    alone, end = stepwell.torch.ops.linear_attention(*(t[:, 2:] for t in leaves))
    assert torch.equal(o[:, 2:], alone) and torch.equal(last, end)
    assert all(torch.isfinite(t).all() for t in torch.autograd.grad(o.sum() + last.sum(), leaves))


def test_what_is_no_dense_cpu_tensor_is_refused():
    softmax = stepwell.torch.ops.softmax
    with pytest.raises(ValueError, match="x is on device meta, expected cpu"):
        softmax(torch.zeros(2, 3, device="meta"))
    with pytest.raises(ValueError, match="x has layout torch.sparse_coo"):
        softmax(torch.eye(3).to_sparse())
    for dtype in (torch.int64, torch.bool, torch.complex64):
        with pytest.raises(TypeError, match="x has dtype"):
            softmax(torch.zeros(2, 3, dtype=dtype))
    with pytest.raises(TypeError, match="x is a numpy.ndarray, expected a torch.Tensor"):
        softmax(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="cu_seqlens is on device meta"):
        n = numbers()
        stepwell.torch.ops.linear_attention(n(1, 2, 1, 3), n(1, 2, 1, 3), n(1, 2, 1, 3),
                                            cu_seqlens=torch.zeros(2, dtype=torch.int64, device="meta"))


def test_shapes_that_do_not_fit_say_so():
    n = numbers()
    with pytest.raises(ValueError, match=r"\[gated_delta\]"):
        stepwell.torch.ops.linear_attention(n(1, 2, 3, 3), n(1, 2, 2, 3), n(1, 2, 3, 3))


def test_changes_in_place_are_noticed():
    x = numbers()(2, 3)
    weight = torch.ones(3, dtype=torch.float64).requires_grad_()
    y = stepwell.torch.ops.rms_norm(x, weight)
    x.add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        y.sum().backward()


def test_results_may_be_changed_in_place():
    x = numbers()(2, 3).requires_grad_()
    y = stepwell.torch.ops.softmax(x)
    before = torch.autograd.grad(stepwell.torch.ops.softmax(x)[:, 0].sum(), x)
    y.mul_(2)
    after = torch.autograd.grad(y[:, 0].sum(), x)
    assert torch.allclose(after[0], 2 * before[0])


def test_second_derivatives_are_refused():
    x = numbers()(2, 3).requires_grad_()
    (gradient,) = torch.autograd.grad(stepwell.torch.ops.softmax(x)[:, 0].sum(), x, create_graph=True)
    with pytest.raises(RuntimeError):
        gradient.sum().backward()


def test_every_op_is_here():
    functions = {name for name in stepwell.ops.__all__ if name not in ("vjp", "verify_gated_delta")}
    assert set(stepwell.torch.ops.__all__) == functions
    for name in functions:
        function = getattr(stepwell.torch.ops, name)
        assert function.__doc__ == getattr(stepwell.ops, name).__doc__
        assert "Array" not in str(inspect.signature(function)) and "return" in typing.get_type_hints(function)
    assert set(OPS) <= functions


def test_memory_does_not_grow():
    x = numbers()(64, 64).requires_grad_()

    def calls(count):
        for _ in range(count):
            stepwell.torch.ops.softmax(x).sum().backward()

    calls(200)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calls(2000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096  # KiB; a leak of one array is 64 MiB
